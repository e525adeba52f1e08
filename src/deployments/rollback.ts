import { conflict, invalidField } from '#kernel/errors.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { findExecution } from '#deployments/history.ts';
import type { ResolvedService, Resolution, ServiceSnapshot, Snapshot } from '#deployments/model/snapshot.ts';
import { executionIdOf } from '#deployments/status.ts';
import { findDeployment } from '#deployments/queries.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';

/** Execution that a rollback can go back to: its services that still exist, as they were deployed then. */
export interface EarlierExecution {
  to: NonNullable<Snapshot['rollbackTo']>;
  services: ServiceSnapshot[];
  /** Variables that all of its services saw. */
  shared: FrozenVariable[];
  resolution: Resolution;
  /** True if the execution was of the whole environment. */
  whole: boolean;
}

/**
 * Finds what an earlier execution deployed, of the whole environment or of one service (docs/contributing/engine.md, *Snapshot, resolution, plan*: Rollback).
 * 400 for an execution that the environment never had, 409 for one that deployed nothing: what never ran is nothing to go back to.
 */
export async function findEarlierExecution(
  db: Database,
  scope: Scope,
  environmentId: string,
  executionId: string,
  serviceId?: string,
): Promise<EarlierExecution> {
  const found = await findExecution(db, scope, environmentId, executionId);
  const deployment = found && (await findDeployment(db, scope, found.id));
  if (!deployment) throw invalidField('execution_id', 'names no execution of this environment');
  const { number } = deployment;
  const snapshot = deployment.snapshot as Snapshot;
  const resolution = deployment.resolution as Resolution | null;
  if (snapshot.action !== 'DEPLOY' || !resolution)
    throw conflict(`Execution ${number} deployed nothing: name one that did.`);
  if (snapshot.expired)
    throw conflict(
      `Execution ${number} is no longer kept: only what the kept releases were made of can be gone back to.`,
    );
  const deployed = await listDeployed(db, scope, deployment.id);
  if (serviceId === undefined && deployment.outcome !== 'SUCCESS')
    throw conflict(`Execution ${number} did not succeed: only one that did can be gone back to.`);
  const services = snapshot.services.filter(
    (service) => deployed.has(service.serviceId) && (serviceId === undefined || service.serviceId === serviceId),
  );
  if (services.length === 0)
    throw conflict(
      serviceId === undefined
        ? `Nothing of execution ${number} is left in the environment.`
        : `The service was not deployed with success in execution ${number}.`,
    );
  return {
    to: { deploymentId: deployment.id, number },
    services,
    shared: snapshot.shared ?? [],
    resolution: {
      ...resolution,
      services: Object.fromEntries(
        services.map(({ serviceId: id }) => [
          id,
          { ...sourcesOf(resolution.services[id]), ...imageOf(deployed.get(id)!) },
        ]),
      ),
    },
    whole: serviceId === undefined && deployment.whole_environment,
  };
}

/** Finds the execution that made the present release of a service; undefined without a release. */
export async function findLastExecution(
  db: Database,
  scope: Scope,
  environmentId: string,
  serviceId: string,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('service')
    .innerJoin('release', 'release.id', 'service.release_id')
    .innerJoin('deployment', 'deployment.id', 'release.deployment_id')
    .select('deployment.number')
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.id', '=', serviceId)
    .executeTakeFirst();
  return row && executionIdOf(environmentId, row.number);
}

const sourcesOf = ({ commit, valuesCommit, chart, imageSource }: ResolvedService = {}) => ({
  commit,
  ...(imageSource ? { imageSource } : {}),
  ...(valuesCommit ? { valuesCommit } : {}),
  ...(chart ? { chart } : {}),
});

const imageOf = ({ image, build_key }: { image: string | null; build_key: string | null }) =>
  image ? { image, ...(build_key ? { buildKey: build_key } : {}) } : {};

/**
 * Returns the services that a deployment deployed with success and that still exist. Each comes with the image of its release, if that is
 * kept.
 */
async function listDeployed(db: Database, scope: Scope, deploymentId: string) {
  const rows = await db
    .selectFrom('deployment_service as ds')
    .innerJoin('service', 'service.id', 'ds.service_id')
    .leftJoin('release', (join) =>
      join.onRef('release.service_id', '=', 'ds.service_id').onRef('release.deployment_id', '=', 'ds.deployment_id'),
    )
    .select(['ds.service_id', 'release.image', 'release.build_key'])
    .where('ds.organization_id', '=', scope.organizationId)
    .where('ds.deployment_id', '=', deploymentId)
    .where('ds.state', '=', sql.lit('DEPLOYED'))
    .where('service.deleting', '=', false)
    .execute();
  return new Map(rows.map((row) => [row.service_id, row]));
}
