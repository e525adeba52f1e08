export { cancelDeployment, cancelEnvironment } from '#deployments/cancel.ts';
export {
  findExecution,
  selectHistory,
  listHistoryServices,
  listQueue,
  type HistoryDeployment,
  type HistoryOf,
  type HistoryService,
} from '#deployments/history.ts';
export { chooseAlone } from '#deployments/executor/claims.ts';
export { readLastLines } from '#deployments/logs/failed-instance.ts';
export { readDeploymentLog, readLogChunks } from '#deployments/logs/reader.ts';
export type { DeploymentLine } from '#deployments/logs/writer.ts';
export { CANCELLATIONS, DEPLOYMENTS, PROGRESS } from '#deployments/model/channels.ts';
export type {
  BuildRecipe,
  CheckoutFiles,
  DockerfileMaker,
  Configured,
  DeclaredVolume,
  DeployableKind,
  ExpandedVariables,
  PlannedTask,
  ChartSourceToResolve,
  GitSourceToResolve,
  WorkloadOptions,
} from '#deployments/model/kind.ts';
export { keepLastLines, maskLines } from '#deployments/logs/failed-instance.ts';
export {
  clearTagWarnings,
  setWarning,
  WARNING_CODES,
  type DiskWarning,
  type WarningCode,
} from '#deployments/warnings.ts';
export { KNOWN_CAUSES } from '#deployments/causes/index.ts';
export { DiskLimitError, ERROR_CODES, toErrorView, type ErrorCode } from '#deployments/model/errors.ts';
export type { Observed } from '#deployments/model/observed.ts';
export {
  STEP_NAMES,
  type Commit,
  type FrozenServices,
  type LastRelease,
  type ImageName,
  type PlannedService,
  type ResolvedService,
  type ServiceSnapshot,
  type StepName,
} from '#deployments/model/snapshot.ts';
export {
  ACTIONS,
  detailsOf,
  STATES,
  type DeploymentAction,
  type RunEvent,
  type State,
} from '#deployments/model/states.ts';
export { PUBLIC_REGISTRY } from '#deployments/model/kind.ts';
export { triggerActionOf } from '#deployments/model/names.ts';
export { outputPathOf } from '#deployments/model/output-path.ts';
export {
  generationOf,
  type Execution,
  type ExpandVariables,
  type KindHooks,
  type ChartRequest,
  type Sources,
} from '#deployments/executor/engine.ts';
export type { MachineRecords, StartAgain } from '#deployments/watchers/running-watcher.ts';
export {
  discardFailed,
  findExecutionById,
  listExecutions,
  listFollowedExecutions,
  type ExecutionRow,
  type FollowedExecution,
} from '#deployments/executions/queries.ts';
export { readExecutionLog, readExecutionLogAfter, type PlacedLine } from '#deployments/executions/log.ts';
export { listActiveDeployments, lockRunningOf, lockWaitingPush, type DeploymentRow } from '#deployments/queries.ts';
export { requestDeployment, snapshotOf, type DeploymentPlace, type DeploymentRequest } from '#deployments/request.ts';
export { findEarlierExecution, findLastExecution, type EarlierExecution } from '#deployments/rollback.ts';
export { previewDeployment, type DeploymentPreview } from '#deployments/preview.ts';
export { listenForEnds, waitForEnd } from '#deployments/settle.ts';
export {
  deploymentState,
  environmentStatuses,
  executionIdOf,
  pollingStatus,
  serviceStatuses,
  shownAction,
  type ServiceStatus,
} from '#deployments/status.ts';
