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
import { listDomainsByServices } from '#services/capabilities/service/custom-domains/index.ts';
import { listLostSecrets } from '#services/capabilities/service/variables/index.ts';

/**
 * Finds the services that a rollback to an execution would deploy. Image, configuration, variables and secret versions are those of that
 * time. Custom domains that the service no longer has are left out: another service may have them now. Throws 409 if a secret version is no
 * longer kept.
 */
export async function findRollback(
  context: Context,
  scope: Scope,
  environmentId: string,
  executionId: string,
  serviceId?: string,
): Promise<EarlierExecution> {
  const earlier = await findEarlierExecution(context.db, scope, environmentId, executionId, serviceId);
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

/**
 * Requests once more what services last had with success, in the order of their naming; those that one execution made go together, by their stages.
 * Their images may be gone with the rest: each is built again unless it is still there.
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
      // One that can't be gone back to keeps none of the others down.
      if (!(error instanceof AppError)) throw error;
      context.log.warn({ err: error, serviceId }, 'cannot go back to the last release of a service');
    }
  if (found.length === 0) return;
  const { to, shared, resolution } = found[0]!;
  const commits = found.flatMap((earlier) =>
    Object.entries(earlier.resolution.services).map(([id, { commit }]) => [id, { commit }] as const),
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

/** Requests to go back to an earlier execution; answers the deployment's id. The environment's row is locked by the caller. */
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
