import type { Database, Scope } from '#platform/database/index.ts';
import type { Observed } from '#deployments/model/observed.ts';
import { detailsOf, stateOf, type DeploymentAction, type State } from '#deployments/model/states.ts';
import { waitingWarnings } from '#deployments/warnings.ts';
import { toErrorView } from '#deployments/model/errors.ts';
import {
  listEnvironmentStatusRows,
  listServiceStatusRows,
  type EnvironmentStatusRow,
  type ServiceStatusRow,
  type StatusFilter,
} from '#deployments/status-queries.ts';

/** Id of an execution: environment and number. */
export const executionIdOf = (environmentId: string, number: number): string => `${environmentId}-${number}`;

const secondsBetween = (from: Date | string | null, to: Date | string | null): number | null =>
  from && to ? Math.max(0, Math.round((new Date(to).getTime() - new Date(from).getTime()) / 1000)) : null;

const NEVER = { action: 'UNKNOWN', status: 'NEVER', sub_action: 'NONE' } as const;

/** `status` for the polling client of docs/contributing/rules.md, *Polling clients* (docs/contributing/rules.md 12). */
export function pollingStatus(state: State, status: string): string {
  if (state === 'DEPLOYED' || state === 'RESTARTED') return 'RUNNING';
  if (state === 'STOPPED') return 'STOPPED';
  return state.endsWith('_ERROR') ? 'ERROR' : status;
}

/** A service's status as it is answered (docs/contributing/rules.md, *Status*). */
const toServiceStatus = (row: ServiceStatusRow) =>
  row.observed ? toObservedStatus(row, row.observed) : toDeployedStatus(row);

/** Returns the status of a service that an external system runs: no deployment stands behind its state. */
function toObservedStatus(row: ServiceStatusRow, observed: Observed) {
  const { action, phase } = observed;
  const known = action && phase ? stateOf(action, phase) : action ? 'UNAVAILABLE' : 'READY';
  const state: State = row.unreachable ? 'UNAVAILABLE' : known;
  const details = action ? detailsOf(action, stateOf(action, phase ?? 'failed'), 'NONE') : NEVER;
  const duration = secondsBetween(observed.startedAt, observed.endedAt);
  return {
    id: row.id,
    state,
    status: pollingStatus(state, details.status),
    service_deployment_status: !action ? 'NEVER_DEPLOYED' : observed.current ? 'UP_TO_DATE' : 'OUT_OF_DATE',
    is_part_last_deployment: false,
    status_details: details,
    deployment_request_id: null,
    deployment_requests_count: 0,
    ...(observed.endedAt ? { last_deployment_date: observed.endedAt } : {}),
    steps: { total_duration_sec: duration, total_computing_duration_sec: duration ?? 0, details: [] },
  };
}

function toDeployedStatus(row: ServiceStatusRow) {
  const state = (row.state ?? 'READY') as State;
  const details = row.state ? detailsOf(row.action as DeploymentAction, state, row.sub_action ?? 'NONE') : NEVER;
  // What is under way tells of itself how it goes.
  const unavailable = row.unreachable && (row.request_status ?? 'ENDED') === 'ENDED';
  const steps = (row.steps ?? []).map((step) => ({
    step_name: step.name,
    status: step.status,
    duration_sec: secondsBetween(step.started_at, step.ended_at) ?? 0,
    started_at: new Date(step.started_at).toISOString(),
  }));
  return {
    id: row.id,
    state: unavailable ? ('UNAVAILABLE' as const) : state,
    status: unavailable ? details.status : pollingStatus(state, details.status),
    service_deployment_status: !row.deployed ? 'NEVER_DEPLOYED' : row.current ? 'UP_TO_DATE' : 'OUT_OF_DATE',
    is_part_last_deployment: row.number !== null && row.number === row.last_number,
    status_details: details,
    deployment_request_id: row.deployment_id,
    deployment_requests_count: row.requests,
    ...(row.number === null ? {} : { error: toErrorView({ ...row, number: row.number }) }),
    ...withWarnings([...(row.warnings ?? []), ...waitingWarnings(row)]),
    ...(row.last_deployment_date ? { last_deployment_date: row.last_deployment_date.toISOString() } : {}),
    steps: {
      total_duration_sec: secondsBetween(row.started_at, row.ended_at),
      total_computing_duration_sec: steps.reduce((sum, step) => sum + step.duration_sec, 0),
      details: steps,
    },
    ...(row.number === null ? {} : { execution_id: executionIdOf(row.environment_id, row.number) }),
  };
}

const withWarnings = (warnings: NonNullable<ServiceStatusRow['warnings']>) =>
  warnings.length === 0
    ? {}
    : { warnings: warnings.map((warning) => ({ ...warning, since: new Date(warning.since).toISOString() })) };

export type ServiceStatus = ReturnType<typeof toServiceStatus>;

/** An environment's status: the union of both forms of the reference (docs/contributing/rules.md 11). */
function toEnvironmentStatus(row: EnvironmentStatusRow) {
  const state = environmentState(row.action, row.status, row.outcome, row.cancel_requested_at);
  // Clients that watch read this field alone. A successful dry run leaves no state of its own, and READY would have them wait for ever.
  const last = row.action || !row.requested ? state : 'DEPLOYED';
  const details = row.action ? detailsOf(shownAction(row.action), state, 'NONE') : NEVER;
  const deployed = row.deployed === 0 ? 'NEVER_DEPLOYED' : row.current === row.services ? 'UP_TO_DATE' : 'OUT_OF_DATE';
  const duration = secondsBetween(row.started_at, row.ended_at);
  return {
    id: row.id,
    state,
    status: pollingStatus(state, details.status),
    last_deployment_date: row.last_ended_at?.toISOString() ?? null,
    last_deployment_state: last,
    last_deployment_id: row.number === null ? null : executionIdOf(row.id, row.number),
    total_deployment_duration_in_seconds: duration,
    origin: row.origin,
    triggered_by: row.requested_by_name,
    deployment_status: deployed,
    service_deployment_status: deployed,
    is_part_last_deployment: row.action !== null,
    status_details: details,
    deployment_request_id: row.deployment_id,
    deployment_requests_count: row.requests,
    error: environmentError(row),
    steps: { total_duration_sec: duration, total_computing_duration_sec: duration ?? 0, details: [] },
    ...(row.number === null ? {} : { execution_id: executionIdOf(row.id, row.number) }),
    metrics: null,
  };
}
function environmentError(row: EnvironmentStatusRow) {
  if (row.number === null) return undefined;
  const view = toErrorView({ ...row, environment_id: row.id, number: row.number });
  return view && { ...view, ...(row.error_service ? { service: row.error_service } : {}) };
}
export type EnvironmentStatus = ReturnType<typeof toEnvironmentStatus>;

/** An environment is never bare QUEUED: what is run in it is shown as a deploy (docs/contributing/rules.md 11). */
export const shownAction = (action: string): DeploymentAction =>
  action === 'RUN' ? 'DEPLOY' : (action as DeploymentAction);

function environmentState(
  action: string | null,
  status: string | null,
  outcome: string | null,
  cancelRequested: Date | null,
): State {
  if (!action) return 'READY';
  const of = shownAction(action);
  if (status === 'ENDED')
    return stateOf(of, outcome === 'SUCCESS' ? 'succeeded' : outcome === 'ERROR' ? 'failed' : 'canceled');
  if (cancelRequested) return 'CANCELING';
  return stateOf(of, status === 'WAITING' ? 'queued' : 'active');
}

/** A deployment's own state: RECAP while its result is being written (docs/contributing/rules.md 11). */
export const deploymentState = (row: {
  action: string;
  status: string;
  outcome: string | null;
  cancel_requested_at: Date | null;
}): State =>
  row.status === 'RECAP' ? 'RECAP' : environmentState(row.action, row.status, row.outcome, row.cancel_requested_at);

/** Statuses of services, in creation order. */
export const serviceStatuses = async (
  db: Database,
  scope: Scope,
  filter: StatusFilter,
): Promise<(ServiceStatus & { kind: string })[]> =>
  (await listServiceStatusRows(db, scope, filter)).map((row) => ({ ...toServiceStatus(row), kind: row.kind }));

/** Statuses of environments, in creation order. */
export const environmentStatuses = async (
  db: Database,
  scope: Scope,
  environmentIds: string[],
): Promise<EnvironmentStatus[]> =>
  (await listEnvironmentStatusRows(db, scope, environmentIds)).map(toEnvironmentStatus);
