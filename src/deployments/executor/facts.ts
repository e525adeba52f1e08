import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { preparedRead } from '#platform/database/prepared.ts';
import type { LastRelease, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { Handle } from '#runtimes/runtime.ts';

/** Facts of a service, as steps need them (docs/contributing/engine.md, *What is stored, what is derived*). */
export interface ServiceFacts {
  wanted: 'absent' | 'stopped' | 'running';
  handle: Handle | null;
  dirty: boolean;
  release: LastRelease | null;
}

/** Facts of the services, by id. */
export async function loadFacts(db: Database, scope: Scope, serviceIds: string[]): Promise<Map<string, ServiceFacts>> {
  const rows = await selectFacts(db, scope.organizationId, serviceIds);
  return new Map(
    rows.map((row) => [
      row.id,
      {
        wanted: row.wanted as ServiceFacts['wanted'],
        handle: row.handle as Handle | null,
        dirty: row.dirty,
        release: row.release_id
          ? {
              image: row.image,
              buildKey: row.build_key,
              commit: row.resolution?.commit ?? null,
              valuesCommit: row.resolution?.valuesCommit ?? null,
              imageSource: row.resolution?.imageSource ?? null,
              chart: row.resolution?.chart ?? null,
            }
          : null,
      },
    ]),
  );
}

const selectFacts = preparedRead((db, organizationId: string, serviceIds: string[]) =>
  db
    .selectFrom('service')
    .leftJoin('release', 'release.id', 'service.release_id')
    .select([
      'service.id',
      'service.wanted',
      'service.handle',
      'service.dirty',
      'release.image',
      'release.build_key',
      'release.resolution',
      'release.id as release_id',
    ])
    .where('service.organization_id', '=', organizationId)
    .where('service.id', '=', sql<string>`any(${serviceIds})`),
);

/** Records the wanted state of a service: from here on something may exist outside, whatever becomes of the step. */
export const markWanted = (db: Database, scope: Scope, serviceId: string, wanted: ServiceFacts['wanted']) =>
  changeService(db, scope, serviceId, { wanted });

/** Marks a service whose work was abandoned: its state outside is unknown, and its next deployment skips nothing. */
export const markUnknown = (db: Database, scope: Scope, serviceId: string, change: { deleting?: false } = {}) =>
  changeService(db, scope, serviceId, { dirty: true, ...change });

export interface NewRelease {
  id: string;
  deploymentId: string;
  service: ServiceSnapshot;
  resolution: unknown;
  image: string | null;
  buildKey: string | null;
}

/** Returns the query that keeps a successful apply as a release; `recordHandle` makes it the service's current one. */
export const insertRelease = (db: Database, scope: Scope, { id, service, ...release }: NewRelease) =>
  db.insertInto('release').values({
    id,
    organization_id: scope.organizationId,
    service_id: service.serviceId,
    deployment_id: release.deploymentId,
    service_version: service.versions.service,
    environment_version: service.versions.environment,
    project_version: service.versions.project,
    snapshot: json(service),
    resolution: json(release.resolution ?? {}),
    image: release.image,
    build_key: release.buildKey,
  });

/** Records the present handle of a service and its release; `releaseId` is left out if the release stays. */
export const recordHandle = (
  db: Database,
  scope: Scope,
  serviceId: string,
  facts: {
    handle: Handle | null;
    wanted: ServiceFacts['wanted'];
    releaseId?: string | null;
    newestCommit?: NewestCommit;
  },
) =>
  changeService(db, scope, serviceId, {
    handle: facts.handle === null ? null : json(facts.handle),
    wanted: facts.wanted,
    dirty: false,
    ...(facts.releaseId === undefined ? {} : { release_id: facts.releaseId }),
    ...(facts.newestCommit ? { newest_commit: recordedCommit(facts.newestCommit) } : {}),
  });

/** Commit that a service is compared with: `exact` takes the place of the recorded one, `atLeast` stands where none is recorded. */
export type NewestCommit = { exact: string | null } | { atLeast: string | null };

const recordedCommit = (newest: NewestCommit) =>
  'exact' in newest ? newest.exact : sql<string | null>`coalesce(newest_commit, ${newest.atLeast}::text)`;

/** Forgets the images of a service, which are removed with it: a rollback to one of its releases builds them again, of the same commit. */
export const forgetImages = (db: Database, scope: Scope, serviceId: string) =>
  db
    .updateTable('release')
    .set({ image: null, build_key: null })
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId);

/** Keeps a service whose delete failed, so that it can be deleted again. */
export const keepService = (db: Database, scope: Scope, serviceId: string) =>
  changeService(db, scope, serviceId, { deleting: false });

const changeService = (
  db: Database,
  scope: Scope,
  serviceId: string,
  change: { wanted?: string; deleting?: boolean; handle?: string | null; dirty?: boolean; release_id?: string | null },
) =>
  db.updateTable('service').set(change).where('organization_id', '=', scope.organizationId).where('id', '=', serviceId);

/** Deletes a service with everything that depends on it; its history stays. */
export const deleteService = (db: Database, scope: Scope, serviceId: string) =>
  db.deleteFrom('service').where('organization_id', '=', scope.organizationId).where('id', '=', serviceId);

/**
 * Removes an environment that is being deleted once its last service is gone, then its project likewise. Its deployments go with it.
 * Answers whether the environment is gone.
 */
export async function removeEmptied(db: Database, scope: Scope, environmentId: string): Promise<boolean> {
  const gone = await db
    .deleteFrom('environment')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', environmentId)
    .where('deleting', '=', true)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('service').select('service.id').whereRef('service.environment_id', '=', 'environment.id'))),
    )
    .returning('project_id')
    .executeTakeFirst();
  if (!gone) return false;
  await db
    .deleteFrom('project')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', gone.project_id)
    .where('deleting', '=', true)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('environment').select('environment.id').whereRef('environment.project_id', '=', 'project.id'),
        ),
      ),
    )
    .execute();
  return true;
}
