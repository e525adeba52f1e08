import { badRequest, conflict, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import {
  requestDeployment,
  serviceStatuses,
  type DeploymentAction,
  type DeploymentRequest,
  type FrozenServices,
} from '#deployments/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import { pinForkCommits } from '#services/capabilities/service/actions/fork-commits.ts';
import { freeze } from '#services/capabilities/service/actions/freeze.ts';
import * as queries from '#services/capabilities/service/actions/queries.ts';
import type { DeployChoice } from '#services/kind.ts';
import { featuresOf, type Capabilities, type RuntimeFeature } from '#runtimes/runtime.ts';
import { forkClusterRefusal, forkOf, forkServiceRefusal } from '#services/service/forks.ts';
import { refuseDeleting } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

export type Trigger = DeploymentRequest['trigger'];

const ACTION_OF: Record<Trigger, DeploymentRequest['action']> = {
  DEPLOY: 'DEPLOY',
  REDEPLOY: 'DEPLOY',
  ROLLBACK: 'DEPLOY',
  STOP: 'STOP',
  RESTART: 'RESTART',
  DELETE: 'DELETE',
  UNINSTALL: 'UNINSTALL',
  RUN: 'RUN',
};

export interface ActionOptions {
  /** Deploy options by service id. */
  choices?: ReadonlyMap<string, DeployChoice>;
  bestEffort?: boolean;
  /** True if no call asks for it: the commits of `choices` are those of pushes, releases and approvals then, and named by nobody. */
  automatic?: boolean;
  /** Waiting deployment that the request widens (`DeploymentRequest.widens`). */
  widens?: string | null | undefined;
}

/**
 * Returns the organization, project, environment and cluster of an action on an environment. `placeOfTarget` returns the same for a
 * service.
 */
export const placeOfEnvironment = (environment: EnvironmentTarget) => ({
  organizationId: environment.organizationId,
  projectId: environment.projectId,
  projectName: environment.project_name,
  environmentId: environment.id,
  environmentName: environment.name,
  clusterId: environment.clusterId,
  clusterLocked: environment.cluster_locked_at !== null,
});

export const placeOfTarget = (service: ServiceTarget) => ({
  organizationId: service.organizationId,
  projectId: service.projectId,
  projectName: service.project_name,
  environmentId: service.environmentId,
  environmentName: service.environment_name,
  clusterId: service.cluster_id,
  clusterLocked: service.cluster_locked_at !== null,
});

/**
 * Requests an action on one service and returns its status with the new state (docs/contributing/rules.md 11). `requested` is the id of the
 * request, for callers that wait for it. The status is that of the running request, which may be another.
 */
export async function actOnService(
  context: Context,
  service: ServiceTarget,
  trigger: Trigger,
  options: ActionOptions = {},
) {
  refuseDeleting(service);
  if (trigger === 'RESTART' && service.wanted !== 'running')
    throw conflict(`${service.name} is not running: deploy it first.`);
  await queries.lockEnvironmentRow(context.db, service, service.environmentId);
  const requested = await submit(context, placeOfTarget(service), trigger, [service.id], options);
  return { ...(await statusOfService(context, service)), requested };
}

export async function statusOfService(context: Context, service: Pick<ServiceTarget, 'id' | 'organizationId'>) {
  return (await serviceStatuses(context.db, service, { serviceIds: [service.id] }))[0];
}

/**
 * Freezes the services and requests the deployment; returns its id. Throws 400 for a service of another environment, and 409 for one that
 * is being deleted.
 */
export async function submit(
  context: Context,
  place: ReturnType<typeof placeOfEnvironment>,
  trigger: Trigger,
  serviceIds: string[] | null,
  options: ActionOptions,
): Promise<string> {
  return requestDeployment(context, {
    place,
    action: ACTION_OF[trigger],
    trigger,
    whole: serviceIds === null,
    ...(await freezeChosen(context, place, trigger, serviceIds, options)),
    bestEffort: options.bestEffort,
    automatic: options.automatic,
    widens: options.widens,
  });
}

/** Requests an action on services of an environment on behalf of a schedule instead of a person. */
export const requestAutomatically = (
  context: Context,
  environment: EnvironmentTarget,
  trigger: Trigger,
  serviceIds: string[],
): Promise<string> => submit(context, placeOfEnvironment(environment), trigger, serviceIds, { automatic: true });

/** Freezes the services that a request would deploy, as they are now. Throws 400 if an id names no service of the environment. */
export async function freezeChosen(
  context: Context,
  place: Pick<ReturnType<typeof placeOfEnvironment>, 'organizationId' | 'environmentId'>,
  trigger: Trigger,
  serviceIds: string[] | null,
  options: ActionOptions,
): Promise<FrozenServices> {
  const rows = await queries.listForSnapshot(context.db, place, place.environmentId, serviceIds);
  for (const id of serviceIds ?? [])
    if (!rows.some((row) => row.id === id)) throw invalidField('id', `${id} names no service of this environment`);
  if (serviceIds) refuseObserved(rows);
  if (trigger !== 'DELETE') for (const row of serviceIds ? rows : []) refuseDeleting(row);
  const ours = rows.filter((row) => !row.observed);
  if (trigger === 'RESTART')
    for (const row of ours)
      if (row.wanted !== 'running') throw conflict(`${row.name} is not running: deploy it first.`);
  const isDeploy = ACTION_OF[trigger] === 'DEPLOY';
  const chosen =
    trigger === 'DELETE'
      ? ours
      : ours.filter((row) => !row.deleting && (serviceIds !== null || !row.is_skipped || !isDeploy));
  const unable = isDeploy || trigger === 'RUN' ? listUnable(chosen) : new Map<string, string>();
  // With several services the others go on, and this one ends with an error.
  const [reason] = unable.values();
  if (reason !== undefined && serviceIds?.length === 1) throw badRequest(reason);
  const choices = await pinForkCommits(context, place, chosen, options);
  const frozen = await freeze(context, place.organizationId, place.environmentId, chosen, choices);
  return {
    ...frozen,
    services: frozen.services.map((service) => {
      const why = unable.get(service.serviceId);
      return why === undefined ? service : { ...service, unable: why };
    }),
  };
}

const NEEDS: Record<RuntimeFeature, string> = {
  builds: 'is built from its sources',
  'registry-images': 'runs an image of a registry',
  'machine-programs': 'runs a program of a host machine',
  tasks: 'runs commands to their end',
  'host-address': 'keeps its state in Quarterdeck, which its commands must reach',
  'database-backups': 'is a managed database, which is backed up from its container',
  egress: 'reaches listed hosts only, through a proxy',
  helm: 'runs on Kubernetes only, by the program helm',
  keda: 'has autoscaling by KEDA, which is part of a Kubernetes cluster (without it, set min_running_instances and max_running_instances)',
  'older-databases':
    'is a database of a version that is no longer run here (GET /environment/{environmentId}/databaseConfiguration lists those that are)',
};

/**
 * Returns the reason, by service id, why the environment or its cluster cannot run a service. Each reason is a sentence that names the service.
 */
function listUnable(rows: queries.SnapshotRow[]): Map<string, string> {
  return new Map(
    rows.flatMap((row): [string, string][] => {
      const { cluster_name: cluster, cluster_runtime: runtime } = row;
      const capabilities = row.cluster_capabilities as Capabilities | null;
      const has = featuresOf(runtime, capabilities);
      const refusal = forkOf(row) && (forkClusterRefusal(runtime) ?? forkServiceRefusal(row));
      if (refusal) return [[row.id, refusal]];
      const missing = (row.requires as RuntimeFeature[]).filter((feature) => !has.includes(feature));
      if (missing.length === 0) return [];
      const problems = missing.map((feature) => `${row.name} ${NEEDS[feature]}`).join('; ');
      const remedies = missing.flatMap((feature) => capabilities?.missing?.[feature] ?? []);
      return [
        [
          row.id,
          `Cluster ${cluster} (${runtime}) can't run this: ${[`${problems}.`, ...remedies].join(' ')} Move it to an environment of another cluster, or leave it out (skip it in its deployment stage).`,
        ],
      ];
    }),
  );
}

/** Throws 400 for services that Argo CD runs, because they are read-only here (docs/contributing/rules.md 39). */
export function refuseObserved(rows: Pick<queries.SnapshotRow, 'id' | 'name' | 'observed'>[]): void {
  for (const row of rows)
    if (row.observed)
      throw invalidField(
        'id',
        `${row.id} names ${row.name}, which Argo CD runs: it is only read here, change it in its repository or in Argo CD`,
      );
}

/** Returns the action of a trigger. */
export const actionOf = (trigger: Trigger): DeploymentAction => ACTION_OF[trigger];
