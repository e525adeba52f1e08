import type { WorkLoop, WorkReport } from '#platform/work/index.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { removeUnusedWebhooks } from '#services/capabilities/service/git-webhook/index.ts';
import type { Kind } from '#services/kind.ts';
import { BRANCH_REPORT } from '#services/pushes/branch-queries.ts';
import { createCommitStatusLoop } from '#services/pushes/commit-status.ts';
import { COMMIT_STATUS_REPORT } from '#services/pushes/commit-status-queries.ts';
import { createPollLoop, reconcileFollowed } from '#services/pushes/polling.ts';
import { PUSH_REPORT, removeOldPushes } from '#services/pushes/queries.ts';
import { createRepositoryReader } from '#services/sources/repository-reader.ts';
import type { OrganizationSources } from '#services/sources/sources.ts';
import { createPushLoop, type PushParts } from '#services/pushes/work.ts';

export { gitPushRoutes } from '#services/pushes/receive.ts';

/** Figures of the work on pushes. */
export const PUSH_REPORTS: WorkReport[] = [PUSH_REPORT, BRANCH_REPORT, COMMIT_STATUS_REPORT];

type Loop = Pick<WorkLoop<never>, 'start' | 'stop' | 'nudge' | 'channel'>;

/** Makes the loops that bring pushes to services. */
export function createPushLoops(
  { sources, ...rest }: Omit<PushParts, 'repositories'> & { sources: OrganizationSources },
  nodeId: string,
): Loop[] {
  const parts = { ...rest, repositories: createRepositoryReader(sources) };
  return [createPushLoop(parts, nodeId), createPollLoop(parts, nodeId), createCommitStatusLoop(rest.platform, nodeId)];
}

const HOUR = 3600;

/** Makes the recurring tasks of pushes. */
export const pushTasks = (kinds: Kind[]): RecurringTask[] => [
  { name: 'followed-branches', everySeconds: 20, run: (platform) => reconcileFollowed(platform, kinds) },
  {
    name: 'unused-git-webhooks',
    everySeconds: 600,
    run: (platform, signal) => removeUnusedWebhooks(platform, kinds, signal),
  },
  { name: 'old-pushes', everySeconds: HOUR, run: async ({ db }) => void (await removeOldPushes(db)) },
];
