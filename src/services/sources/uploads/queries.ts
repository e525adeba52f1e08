import type { Insertable } from 'kysely';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';

/** Service whose uploads are meant. */
export interface UploadsOf extends Scope {
  serviceId: string;
}

/** Uploads that nothing needs: those of a service that were asked for last are kept, for an hour. A request may be about to name them. */
const MOST_UNNEEDED = 3;
const UNNEEDED_SECONDS = 3600;

const selectStored = (db: Database, { organizationId, serviceId }: UploadsOf) =>
  db
    .selectFrom('source_upload')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('service_id', '=', serviceId)
    .where('stored_at', 'is not', null);

/** Finds an upload by its commit, or by the first digits of that. */
export const findUploadByCommit = (db: Database, of: UploadsOf, commit: string) =>
  selectStored(db, of)
    .where('commit_id', 'like', `${commit}%`)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst();

/** Finds the upload with the same content, and keeps it for a while. */
export const keepUploadByTree = (db: Database, { organizationId, serviceId }: UploadsOf, tree: string) =>
  db
    .updateTable('source_upload')
    .set({ requested_at: sql`now()` })
    .where('organization_id', '=', organizationId)
    .where('service_id', '=', serviceId)
    .where('tree_id', '=', tree)
    .where('stored_at', 'is not', null)
    .returningAll()
    .executeTakeFirst();

/** Keeps an upload for a while, also from a removal under way; undefined if it was removed. */
export const keepUpload = (db: Database, { organizationId, serviceId }: UploadsOf, id: string) =>
  db
    .updateTable('source_upload')
    .set({ requested_at: sql`now()` })
    .where('organization_id', '=', organizationId)
    .where('service_id', '=', serviceId)
    .where('id', '=', id)
    .where('stored_at', 'is not', null)
    .returning('id')
    .executeTakeFirst();

export const insertUpload = (db: Database, upload: Insertable<DB['source_upload']>) =>
  db.insertInto('source_upload').values(upload).execute();

/** Breaks `source_upload_part_organization_id_upload_id_fkey` where the upload was removed. */
export const insertPart = (db: Database, part: Insertable<DB['source_upload_part']>) =>
  db.insertInto('source_upload_part').values(part).execute();

/** Marks an upload as whole. Breaks `source_upload_tree` where another one of the same content became whole before. */
export const markStored = (db: Database, { organizationId }: Scope, id: string) =>
  db
    .updateTable('source_upload')
    .set({ stored_at: sql`now()` })
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();

export const deleteUpload = (db: Database, { organizationId }: Scope, id: string) =>
  db.deleteFrom('source_upload').where('organization_id', '=', organizationId).where('id', '=', id).execute();

/** Returns a part of an upload; undefined behind the last one. */
export const findPart = (db: Database, { organizationId }: Scope, uploadId: string, number: number) =>
  db
    .selectFrom('source_upload_part')
    .select('content')
    .where('organization_id', '=', organizationId)
    .where('upload_id', '=', uploadId)
    .where('number', '=', number)
    .executeTakeFirst();

/** Returns the commit that a request deploys for a service; undefined as long as its repository was not asked. */
export async function findCommitOfRequest(
  db: Database,
  { organizationId, serviceId }: UploadsOf,
  deploymentId: string,
): Promise<string | undefined> {
  const { rows } = await sql<{ id: string | null }>`
    select coalesce(s.commit ->> 'id', (select frozen ->> 'commitId' from jsonb_array_elements(d.snapshot -> 'services') as frozen
      where frozen ->> 'serviceId' = ${serviceId} limit 1)) as id
    from deployment_service s join deployment d on d.id = s.deployment_id
    where s.organization_id = ${organizationId} and s.service_id = ${serviceId} and s.deployment_id = ${deploymentId}`.execute(
    db,
  );
  return rows[0]?.id ?? undefined;
}

/**
 * Removes uploads that nothing needs, of one service or of all, and returns their number. Needed are those that the newest `kept` deployments
 * with a commit name, those of the present release, and all that deployments name while one is under way. Others are kept for an hour after they were asked for,
 * and three of a service at most. An upload whose parts are being written stays for that time.
 */
export async function trimUploads(db: Database, kept: number, of?: UploadsOf): Promise<number> {
  const meant = of ? sql`u.organization_id = ${of.organizationId} and u.service_id = ${of.serviceId}` : sql`true`;
  const { numAffectedRows } = await sql`
    with named as (
      select u.id, u.requested_at, u.stored_at,
        exists (select from deployment_service s
          where s.service_id = u.service_id and s.commit ->> 'id' = u.commit_id) as is_named,
        exists (select from (
            select s.commit ->> 'id' as id from deployment_service s
            where s.service_id = u.service_id and s.commit is not null
            order by s.number desc limit ${kept}) newest
          where newest.id = u.commit_id) as is_new,
        exists (select from deployment_service s join deployment d on d.id = s.deployment_id
          where s.service_id = u.service_id and d.status <> 'ENDED') as is_busy,
        exists (select from deployment_service s join deployment d on d.id = s.deployment_id,
            jsonb_array_elements(d.snapshot -> 'services') as frozen
          where s.service_id = u.service_id and d.status <> 'ENDED' and frozen ->> 'serviceId' = u.service_id::text
            and u.commit_id like (frozen ->> 'commitId') || '%') as is_asked,
        exists (select from service join release r on r.id = service.release_id
          where service.id = u.service_id and r.resolution -> 'commit' ->> 'id' = u.commit_id) as is_released,
        row_number() over (partition by u.service_id, u.stored_at is null order by u.requested_at desc, u.id) as rank
      from source_upload u where ${meant}
    )
    delete from source_upload u using named n
    where n.id = u.id and n.requested_at = u.requested_at and n.stored_at is not distinct from u.stored_at
      and not (n.is_new or n.is_asked or n.is_released or n.is_named and n.is_busy)
      and (n.stored_at is not null and n.rank > ${MOST_UNNEEDED} or u.requested_at < now() - make_interval(secs => ${UNNEEDED_SECONDS}))`.execute(
    db,
  );
  return Number(numAffectedRows ?? 0);
}
