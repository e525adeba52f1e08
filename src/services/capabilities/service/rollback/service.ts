import { AppError, conflict } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import {
  findEarlierExecution,
  findLastExecution,
  requestDeployment,
  type DeploymentPlace,
  type EarlierExecution,
} from '#deployments/index.ts';
import { findEnvironmentById } from '#resources/environment/index.ts';
import { listDomainsByServices } from '#services/capabilities/service/custom-domains/index.ts';
import { listLostSecrets } from '#services/capabilities/variables/index.ts';
import { forkCommitOf, forkOf } from '#services/service/forks.ts';

/**
 * Finds the services that a rollback to an execution would deploy. Image, configuration, variables and secret versions are those of that
 * time. Custom domains that the service no longer has are left out: another service may have them now. Throws 409 if a secret version is no
 * longer kept, or for a commit of a fork whose approval another one has replaced.
 */
export async function findRollback(
  context: Context,
  scope: Scope,
  environmentId: string,
  executionId: string,
  serviceId?: string,
): Promise<EarlierExecution> {
  const earlier = await findEarlierExecution(context.db, scope, environmentId, executionId, serviceId);
  await refuseReplacedApproval(context, scope, environmentId, earlier);
  const variables = [...earlier.shared, ...earlier.services.flatMap((service) => service.variables)];
  const lost = await listLostSecrets(context, scope, variables);
  if (lost.length > 0)
    throw conflict(
      `Execution ${earlier.to.number} can't be gone back to: the values that ${lost.join(', ')} had then are no longer kept.`,
    );
  const ids = earlier.services.map((service) => service.serviceId);
  const domains = await listDomainsByServices(context.db, scope, ids);
  const isStillOf = (id: string, name: string) => domains.some((one) => one.service_id === id && one.domain === name);
  const services = earlier.services.map((service) => ({
    ...service,
    customDomains: service.customDomains.filter((name) => isStillOf(service.serviceId, name)),
  }));
  return { ...earlier, services };
}

/** Throws 409 if a service followed a fork at another commit than the one that is approved now. */
async function refuseReplacedApproval(
  context: Context,
  { organizationId }: Scope,
  environmentId: string,
  { services, resolution }: EarlierExecution,
): Promise<void> {
  const environment = await findEnvironmentById(context.db, [organizationId], environmentId);
  const fork = environment && forkOf(environment);
  if (!fork) return;
  for (const service of services) forkCommitOf(fork, service, resolution.services[service.serviceId]?.commit?.id);
}

/**
 * Requests the last successful releases of services again, in the given order. Services of the same execution share a request and keep
 * their stages. A missing image is built again.
 */
export async function requestLastReleases(
  context: Context,
  place: DeploymentPlace,
  serviceIds: string[],
): Promise<void> {
  const executions = new Map<string, string[]>();
  for (const serviceId of serviceIds) {
    const id = await findLastExecution(context.db, place, place.environmentId, serviceId);
    if (id) executions.set(id, [...(executions.get(id) ?? []), serviceId]);
  }
  for (const [executionId, ids] of executions) await requestReleasesOf(context, place, executionId, ids);
}

async function requestReleasesOf(
  context: Context,
  place: DeploymentPlace,
  executionId: string,
  serviceIds: string[],
): Promise<void> {
  const found: EarlierExecution[] = [];
  for (const serviceId of serviceIds)
    try {
      found.push(await findRollback(context, place, place.environmentId, executionId, serviceId));
    } catch (error) {
      // A service without a usable release does not stop the others.
      if (!(error instanceof AppError)) throw error;
      context.log.warn({ err: error, serviceId }, 'cannot go back to the last release of a service');
    }
  if (found.length === 0) return;
  const { to, shared, resolution } = found[0]!;
  const commits = found.flatMap((earlier) =>
    Object.entries(earlier.resolution.services).map(
      ([id, { commit, valuesCommit, chart }]) => [id, { commit, valuesCommit, chart }] as const,
    ),
  );
  await requestDeployment(context, {
    place,
    action: 'DEPLOY',
    trigger: 'ROLLBACK',
    whole: false,
    services: found.flatMap(({ services }) => services),
    shared,
    rollback: { to, resolution: { ...resolution, services: Object.fromEntries(commits) } },
    automatic: true,
  });
}

/** Requests a rollback to an earlier execution and returns the deployment's id. The caller locks the environment's row. */
export async function requestRollback(
  context: Context,
  place: DeploymentPlace,
  executionId: string,
  serviceId?: string,
): Promise<string> {
  const earlier = await findRollback(context, place, place.environmentId, executionId, serviceId);
  const { to, resolution, ...frozen } = earlier;
  const rollback = { to, resolution };
  return requestDeployment(context, { place, action: 'DEPLOY', trigger: 'ROLLBACK', ...frozen, rollback });
}
