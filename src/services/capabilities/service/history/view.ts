import {
  detailsOf,
  executionIdOf,
  toErrorView,
  type DeploymentAction,
  type HistoryDeployment,
  type HistoryService,
  type State,
} from '#deployments/index.ts';

/** ISO 8601 duration. */
export function durationOf(from: Date | null, to: Date | null): string {
  const seconds = from && to ? Math.max(0, Math.round((to.getTime() - from.getTime()) / 1000)) : 0;
  return `PT${seconds}S`;
}

export const auditingOf = (row: HistoryDeployment) => ({
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  triggered_by: row.requested_by_name,
  origin: row.origin,
});

export const commitOf = (service: HistoryService) =>
  service.commit && {
    created_at: service.commit.date,
    git_commit_id: service.commit.id,
    tag: service.commit.tag,
    message: service.commit.message,
    author_name: service.commit.author,
  };

/** Returns the error that a service failed with in a deployment. */
export const errorOf = (row: HistoryDeployment, service: HistoryService) =>
  toErrorView({ ...service, environment_id: row.environment_id, number: row.number });

/** Returns a service's part of a deployment in the second version. */
export function serviceV2(row: HistoryDeployment, service: HistoryService) {
  const state = service.state as State;
  return {
    identifier: {
      name: service.name,
      service_id: service.service_id,
      service_type: service.kind,
      execution_id: executionIdOf(row.environment_id, row.number),
    },
    status: state,
    auditing_data: {
      ...auditingOf(row),
      created_at: service.created_at.toISOString(),
      updated_at: service.updated_at.toISOString(),
    },
    details: { ...service.details, commit: commitOf(service), build_pod_name: '' },
    status_details: detailsOf(service.action as DeploymentAction, state, service.sub_action),
    icon_uri: service.icon_uri,
    total_duration: durationOf(service.started_at, service.ended_at),
    error: errorOf(row, service),
  };
}

/** Returns an execution as in the first version of the service's history. */
export const executionV1 = (row: HistoryDeployment, service: HistoryService, asOutcome: boolean) => ({
  ...service.details,
  id: row.id,
  created_at: service.created_at.toISOString(),
  updated_at: service.updated_at.toISOString(),
  name: service.name,
  commit: commitOf(service),
  error: errorOf(row, service),
  ...(asOutcome ? outcomeOf(service) : { status: service.state }),
});

const outcomeOf = (service: HistoryService) =>
  service.ended_at ? { status: /ERROR|CANCELED/.test(service.state) ? 'FAILED' : 'SUCCESS' } : {};

/** Returns a request in the queue of a service. */
export const queuedService = (row: HistoryDeployment, service: HistoryService) => ({
  identifier: {
    deployment_request_id: row.id,
    service_id: service.service_id,
    service_type: service.kind,
    name: service.name,
  },
  auditing_data: { triggered_by: row.requested_by_name, origin: row.origin },
  status_details: detailsOf(service.action as DeploymentAction, service.state as State, service.sub_action),
  icon_uri: service.icon_uri,
});
