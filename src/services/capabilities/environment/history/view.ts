import { factsOf, kindsWith } from '#kernel/kinds.ts';
import {
  deploymentState,
  detailsOf,
  executionIdOf,
  shownAction,
  triggerActionOf,
  type DeploymentAction,
  type HistoryDeployment,
  type HistoryService,
  type State,
} from '#deployments/index.ts';
import { stageStatus } from '#services/capabilities/environment/status/list.ts';
import { auditingOf, commitOf, durationOf, errorOf, serviceV2 } from '#services/capabilities/service/history/view.ts';

/** Returns a deployment with its stages and services in the second version. */
export function deploymentV2(row: HistoryDeployment, services: HistoryService[]) {
  const state = deploymentState(row);
  return {
    identifier: { execution_id: executionIdOf(row.environment_id, row.number), environment_id: row.environment_id },
    auditing_data: auditingOf(row),
    status: state,
    trigger_action: triggerActionOf(row.action, services[0]?.sub_action),
    total_duration: durationOf(row.started_at, row.ended_at),
    stages: stagesOf(services).map((stage) => ({
      name: stage.name,
      status: stageStatus(
        stage.services.map(
          (service) => detailsOf(service.action as DeploymentAction, service.state as State, 'NONE').status,
        ),
      ),
      duration: durationOf(earliest(stage.services), latest(stage.services)),
      services: stage.services.map((service) => serviceV2(row, service)),
    })),
    action_status: state === 'RECAP' ? 'ONGOING' : detailsOf(shownAction(row.action), state, 'NONE').status,
  };
}

const earliest = (services: HistoryService[]) =>
  services.reduce<Date | null>(
    (at, { started_at }) => (started_at && (!at || started_at < at) ? started_at : at),
    null,
  );
const latest = (services: HistoryService[]) =>
  services.reduce<Date | null>((at, { ended_at }) => (ended_at && (!at || ended_at > at) ? ended_at : at), null);

function stagesOf(services: HistoryService[]): { name: string; services: HistoryService[] }[] {
  const stages = new Map<string, { name: string; services: HistoryService[] }>();
  for (const service of services) {
    const stage = stages.get(service.stage_id) ?? { name: service.stage_name, services: [] };
    stages.set(service.stage_id, stage);
    stage.services.push(service);
  }
  return [...stages.values()];
}

/** Returns a deployment as in the first version of the environment's history. */
export function deploymentV1(row: HistoryDeployment, services: HistoryService[]) {
  const of = (kind: string) =>
    services
      .filter((service) => service.kind === kind)
      .map((service) => ({ ...serviceV1(service), commit: commitOf(service), error: errorOf(row, service) }));
  return {
    id: row.id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    status: deploymentState(row),
    origin: row.origin,
    triggered_by: row.requested_by_name,
    ...Object.fromEntries(kindsWith('historyV1').map((kind) => [factsOf(kind).group!, of(kind)])),
  };
}

const serviceV1 = (service: HistoryService) => ({
  id: service.service_id,
  created_at: service.created_at.toISOString(),
  updated_at: service.updated_at.toISOString(),
  name: service.name,
  status: service.state,
  ...service.details,
});

/** Returns a request in the queue of an environment. */
export const queuedDeployment = (row: HistoryDeployment, services: HistoryService[]) => ({
  identifier: { deployment_request_id: row.id, environment_id: row.environment_id },
  auditing_data: { triggered_by: row.requested_by_name, origin: row.origin },
  trigger_action: triggerActionOf(row.action, services[0]?.sub_action),
  stages: stagesOf(services).map((stage) => ({
    name: stage.name,
    status:
      row.status === 'WAITING'
        ? 'QUEUED'
        : stageStatus(
            stage.services.map(
              (service) => detailsOf(service.action as DeploymentAction, service.state as State, 'NONE').status,
            ),
          ),
    services: stage.services.map((service) => ({
      identifier: { service_id: service.service_id, service_type: service.kind, name: service.name },
      status: stageStatus([detailsOf(service.action as DeploymentAction, service.state as State, 'NONE').status]),
      icon_uri: service.icon_uri,
    })),
  })),
});
