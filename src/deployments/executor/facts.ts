import { newId } from '#kernel/ids.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { LastRelease, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { Handle } from '#runtimes/runtime.ts';

/** Facts of a service, as steps need them (engine.md, *What is stored, what is derived*). */
export interface ServiceFacts {
  wanted: 'absent' | 'stopped' | 'running';
  handle: Handle | null;
  dirty: boolean;
  release: LastRelease | null;
}

/** Facts of the services, by id. */
export async function loadFacts(db: Database, scope: Scope, serviceIds: string[]): Promise<Map<string, ServiceFacts>> {
  const rows = await db
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
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.id', '=', sql<string>`any(${serviceIds})`)
    .execute();
  return new Map(
    rows.map((row) => [
      row.id,
      {
        wanted: row.wanted as ServiceFacts['wanted'],
        handle: row.handle as Handle | null,
        dirty: row.dirty,
        release: row.release_id
          ? { image: row.image, buildKey: row.build_key, commit: row.resolution?.commit ?? null }
          : null,
      },
    ]),
  );
}

/** From here on something may exist outside, whatever becomes of the step. */
export const markWanted = (db: Database, scope: Scope, serviceId: string, wanted: ServiceFacts['wanted']) =>
  db
    .updateTable('service')
    .set({ wanted })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', serviceId)
    .execute();

export interface NewRelease {
  deploymentId: string;
  service: ServiceSnapshot;
  resolution: unknown;
  image: string | null;
  buildKey: string | null;
  handle: Handle;
}

/** What was applied with success is the service's release from now on. */
export async function recordRelease(db: Database, scope: Scope, release: NewRelease): Promise<void> {
  const { service } = release;
  const id = newId();
  await db
    .insertInto('release')
    .values({
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
    })
    .execute();
  await db
    .updateTable('service')
    .set({ release_id: id, handle: json(release.handle), wanted: 'running', dirty: false })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', service.serviceId)
    .execute();
}

export const recordHandle = (
  db: Database,
  scope: Scope,
  serviceId: string,
  handle: Handle | null,
  wanted: ServiceFacts['wanted'],
) =>
  db
    .updateTable('service')
    .set({
      handle: handle === null ? null : json(handle),
      wanted,
      dirty: false,
      ...(wanted === 'absent' ? { release_id: null } : {}),
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', serviceId)
    .execute();

/** A deleted service is gone with everything that hangs on it; its history stays. */
export const deleteService = (db: Database, scope: Scope, serviceId: string) =>
  db.deleteFrom('service').where('organization_id', '=', scope.organizationId).where('id', '=', serviceId).execute();

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
