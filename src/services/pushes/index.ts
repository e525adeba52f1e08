import type { WorkLoop, WorkReport } from '#platform/work/index.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { PUSH_REPORT, removeOldPushes } from '#services/pushes/queries.ts';
import { createPushLoop, type PushParts } from '#services/pushes/work.ts';

export { gitPushRoutes } from '#services/pushes/receive.ts';

/** Figures of the work on pushes. */
export const PUSH_REPORTS: WorkReport[] = [PUSH_REPORT];

/** Makes the loops that bring pushes to services. */
export const createPushLoops = (
  parts: PushParts,
  nodeId: string,
): Pick<WorkLoop<never>, 'start' | 'stop' | 'nudge' | 'channel'>[] => [createPushLoop(parts, nodeId)];

const HOUR = 3600;

export const PUSH_TASKS: RecurringTask[] = [
  { name: 'old-pushes', everySeconds: HOUR, run: async ({ db }) => void (await removeOldPushes(db)) },
];
