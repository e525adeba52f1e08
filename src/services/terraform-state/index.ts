export { holderOfLock } from '#services/terraform-state/lock-info.ts';
export { createStateServer, type StateServer } from '#services/terraform-state/server.ts';
export { readStateFile } from '#services/terraform-state/state-file.ts';
export {
  beginRun,
  currentState,
  endRun,
  forceUnlock,
  type RunCredential,
  type StateOwner,
} from '#services/terraform-state/store.ts';
