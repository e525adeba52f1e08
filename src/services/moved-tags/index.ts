import type { RecurringTask } from '#platform/work/schedule.ts';
import type { Kind } from '#services/kind.ts';
import { reconcileFollowedTags } from '#services/moved-tags/look.ts';

export { createTagLoop } from '#services/moved-tags/look.ts';
export { registryCallRoutes } from '#services/moved-tags/receive.ts';
export { TAG_REPORT } from '#services/moved-tags/queries.ts';

/** Recurring tasks of tags that services follow. */
export const tagTasks = (kinds: Kind[]): RecurringTask[] => [
  { name: 'followed-tags', everySeconds: 20, run: (platform) => reconcileFollowedTags(platform, kinds) },
];
