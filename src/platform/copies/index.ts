export { checkCopy, fetchCopy, makeCopy, removeOldCopies, type CopySource } from '#platform/copies/copies.ts';
export { registerCopyGauges } from '#platform/copies/gauges.ts';
export { CopyStore, type StoredCopy } from '#platform/copies/store.ts';
export { copyTasks } from '#platform/copies/task.ts';
