import type { RecurringTask } from '#platform/work/schedule.ts';
import { trimUploads } from '#services/sources/uploads/queries.ts';

export { findCommitOfRequest, keepUpload, trimUploads } from '#services/sources/uploads/queries.ts';
export type { FolderToStore, StoredFolder } from '#services/sources/uploads/store.ts';

/** Removes uploaded folders that nothing needs any more. */
export const UPLOAD_TASKS: RecurringTask[] = [
  {
    name: 'old-source-uploads',
    everySeconds: 3600,
    run: async ({ db, settings }) => void (await trimUploads(db, settings.keptSourceUploads)),
  },
];
