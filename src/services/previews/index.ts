import type { WorkLoop, WorkReport } from '#platform/work/index.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { CALL_REPORT, removeOldCalls } from '#services/previews/call-queries.ts';
import { createCallLoop } from '#services/previews/calls.ts';
import { PREVIEW_REPORT, removeOldPullRequests } from '#services/previews/queries.ts';
import { createReportLoop } from '#services/previews/report.ts';
import { REPORT_REPORT } from '#services/previews/report-queries.ts';
import { createPreviewLoop, type PreviewParts } from '#services/previews/reconcile.ts';
import { createRepositoryReader } from '#services/sources/repository-reader.ts';
import type { OrganizationSources } from '#services/sources/sources.ts';

type Loop = Pick<WorkLoop<never>, 'start' | 'stop' | 'nudge' | 'channel'>;

/** Figures of the work on pull requests. */
export const PREVIEW_REPORTS: WorkReport[] = [CALL_REPORT, PREVIEW_REPORT, REPORT_REPORT];

/** Makes the loops that show pull requests. */
export const createPreviewLoops = (
  { sources, ...rest }: Omit<PreviewParts, 'repositories'> & { sources: OrganizationSources },
  nodeId: string,
): Loop[] => [
  createCallLoop(rest, nodeId),
  createReportLoop(rest, nodeId),
  createPreviewLoop({ ...rest, repositories: createRepositoryReader(sources) }, nodeId),
];

/** Recurring tasks of previews. */
export const PREVIEW_TASKS: RecurringTask[] = [
  {
    name: 'old-pull-requests',
    everySeconds: 3600,
    run: async ({ db }) => {
      await removeOldCalls(db);
      await removeOldPullRequests(db);
    },
  },
];
