import { chooseAlone } from '#deployments/index.ts';
import { leasedTable, requireHeld, type ClaimRequest, type RowClaim } from '#platform/work/index.ts';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { isDrained } from '#platform/installation/drain.ts';
import type { Insertable, Selectable } from 'kysely';
import type { Content } from '#services/kinds/database/engines/index.ts';

export type BackupRow = Selectable<DB['database_backup']>;
export type RestoreRow = Selectable<DB['database_restore']>;

export type BackupClaim = BackupRow & RowClaim;
export type RestoreClaim = RestoreRow & RowClaim;

const states = {
  waiting: 'QUEUED',
  running: 'RUNNING',
  failed: sql`status = 'FAILED'`,
  givenBack: { status: 'QUEUED' },
};
/** Statements on the claims of backups. */
export const BACKUPS = leasedTable({ table: 'database_backup', ...states });
/** Statements on the claims of restores. */
export const RESTORES = leasedTable({ table: 'database_restore', ...states });

export const insertBackup = (db: Database, backup: Insertable<DB['database_backup']>) =>
  db.insertInto('database_backup').values(backup).execute();

/** The newest first. */
export const selectBackups = (db: Database, scope: Scope) =>
  db
    .selectFrom('database_backup')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .orderBy('created_at', 'desc')
    .orderBy('id');

/** Environment of a backup's database, which may be gone, as the backup has recorded it. */
export type BackupPlace = Pick<BackupRow, 'organization_id' | 'project_id' | 'environment_id' | 'environment_mode'>;

/** Lists the environments that backups of an organization are of. */
export const listBackupPlaces = (db: Database, scope: Scope): Promise<BackupPlace[]> =>
  db
    .selectFrom('database_backup')
    .select(['organization_id', 'project_id', 'environment_id', 'environment_mode'])
    .distinct()
    .where('organization_id', '=', scope.organizationId)
    .execute();

/** Selects the backups of some environments of an organization, the newest first. */
export const selectBackupsAt = (db: Database, scope: Scope, places: BackupPlace[]) =>
  selectBackups(db, scope).where(
    sql<boolean>`(environment_id, environment_mode) in (select * from unnest(
      ${places.map((place) => place.environment_id)}::uuid[], ${places.map((place) => place.environment_mode)}::text[]))`,
  );

/** Selects a database's backups; with `startId` from that one on. */
export const selectBackupsOf = (db: Database, scope: Scope, databaseId: string, startId?: string) => {
  const query = selectBackups(db, scope).where('database_id', '=', databaseId);
  if (startId === undefined) return query;
  const start = db
    .selectFrom('database_backup as first')
    .select('first.created_at')
    .where('first.organization_id', '=', scope.organizationId)
    .where('first.id', '=', startId);
  return query.where('created_at', '<=', start);
};

export const findBackup = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('database_backup')
    .selectAll()
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .executeTakeFirst();

/** Finds a backup and locks its row. */
export const lockBackup = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('database_backup')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

/** Condition: a restore that reads the backup is queued or running. */
const IS_READ = sql<boolean>`exists (select from database_restore r where r.backup_id = database_backup.id and r.status in ('QUEUED', 'RUNNING'))`;

/** Deletes a backup; false while a restore needs it. The machine that has the file removes it, and a worker on it has lost its claim. */
export async function deleteBackup(db: Database, scope: Scope, id: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('database_backup')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where(({ not }) => not(IS_READ))
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Finds the backup that a deployment made of a database before the removal. */
export const findOfDeployment = (db: Database, scope: Scope, deploymentId: string, databaseId: string) =>
  db
    .selectFrom('database_backup')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', deploymentId)
    .where('database_id', '=', databaseId)
    .executeTakeFirst();

/** Claims the backup of a deployment for a further attempt, whatever the state of the attempt before. */
export const takeOver = (db: Database, scope: Scope, id: string, token: string, leaseUntil: Date) =>
  db
    .updateTable('database_backup')
    .set({ status: 'RUNNING', error: null, claim_token: token, lease_until: leaseUntil, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('status', '<>', 'READY')
    .execute();

/** Finds a database and its cluster; undefined when it is gone. */
export const findDatabase = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select(['service.id', 'service.name', 'service.spec', 'service.handle', 'service.wanted'])
    .select(['cluster.id as cluster_id', 'cluster.runtime', 'cluster.node_id'])
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.id', '=', id)
    .executeTakeFirst();

// Claims. A machine claims work on its own clusters and on those that any machine reaches: one backup or restore at a time for each
// database, and none while a deployment changes its environment. Deployments wait for restores in the same way
// (deployments/executor/claims.ts), so that only one process at a time may choose. A drained machine goes on with begun work only.

const idle = sql`
  not exists (select 1 from database_backup o where o.database_id = w.database_id and o.id <> w.id
    and o.status = 'RUNNING' and o.lease_until > clock_timestamp())
  and not exists (select 1 from database_restore o where o.database_id = w.database_id and o.id <> w.id
    and o.status = 'RUNNING' and o.lease_until > clock_timestamp())
  and not exists (select 1 from deployment d where d.environment_id = s.environment_id
    and (d.status in ('RUNNING', 'RECAP') or d.leftover_until > clock_timestamp()))`;

const claimSql = (
  table: 'database_backup' | 'database_restore',
  { nodeId, leaseSeconds }: ClaimRequest,
  { claiming, isLeft }: Pick<typeof BACKUPS, 'claiming' | 'isLeft'>,
  own: ReturnType<typeof sql>,
) => sql`
  update ${sql.table(table)} set ${claiming(leaseSeconds)}, updated_at = clock_timestamp() ${own}
  where id in (
    select w.id from ${sql.table(table)} w
    left join service s on s.id = w.database_id and s.organization_id = w.organization_id
    left join environment e on e.id = s.environment_id
    left join cluster c on c.id = e.cluster_id
    where ((w.status = 'QUEUED' and (w.started_at is not null or not ${isDrained(nodeId)})) or ${isLeft})
      and (c.node_id is null or c.node_id = ${nodeId}) and ${idle}
    order by w.created_at limit 1 for update of w skip locked)
  returning *, claim_token as token`;

/** Tells whether any row is open. Without this check, a look that finds nothing would delay the claims of deployments. */
async function isAnyOpen(db: Database, table: 'database_backup' | 'database_restore'): Promise<boolean> {
  const { rows } = await sql<{ open: boolean }>`select exists
    (select from ${sql.table(table)} where status in ('QUEUED', 'RUNNING')) as open`.execute(db);
  return rows[0]!.open;
}

/** Claims the oldest backups that can be made, one after the other: two backups of one database exclude each other. */
export const claimBackups = (db: Database, request: ClaimRequest): Promise<BackupClaim[]> =>
  claimUpTo(db, 'database_backup', request, (alone) =>
    claimSql('database_backup', request, BACKUPS, sql`, node_id = ${request.nodeId}`).execute(alone),
  );

export const claimRestores = (db: Database, request: ClaimRequest): Promise<RestoreClaim[]> =>
  claimUpTo(db, 'database_restore', request, (alone) =>
    claimSql('database_restore', request, RESTORES, sql``).execute(alone),
  );

async function claimUpTo<Row>(
  db: Database,
  table: 'database_backup' | 'database_restore',
  { limit }: ClaimRequest,
  claimOne: (db: Database) => Promise<{ rows: unknown[] }>,
): Promise<Row[]> {
  if (!(await isAnyOpen(db, table))) return [];
  return chooseAlone(db, async (alone) => {
    const claims: Row[] = [];
    while (claims.length < limit) {
      const { rows } = await claimOne(alone);
      if (rows.length === 0) break;
      claims.push(rows[0] as Row);
    }
    return claims;
  });
}

/** Writes the end of a backup. Throws ClaimLost. */
export const endBackup = (
  db: Database,
  claim: RowClaim,
  end: { error: string } | { bytes: number; storedBytes: number },
): Promise<void> =>
  BACKUPS.end(db, claim, {
    ...('error' in end
      ? { status: 'FAILED', error: end.error }
      : { status: 'READY', bytes: end.bytes, stored_bytes: end.storedBytes }),
    updated_at: sql`now()`,
  });

/** Writes the end of a restore, with the reason where it failed. Throws ClaimLost. */
export const endRestore = (db: Database, claim: RowClaim, error: string | null): Promise<void> =>
  RESTORES.end(db, claim, { status: error === null ? 'READY' : 'FAILED', error, updated_at: sql`now()` });

/** Records the progress of a restore. Throws ClaimLost. */
export const recordProgress = (
  db: Database,
  claim: RowClaim,
  progress: { safety_backup_id: string } | { loaded_at: Date },
): Promise<void> => RESTORES.write(db, claim, progress);

/** Records the handle of the server that the restore restarted. Throws ClaimLost: another deployment may have followed. */
export async function recordRestart(db: Database, claim: RestoreClaim, handle: unknown): Promise<void> {
  const { numAffectedRows } = await sql`
    update service s set handle = ${JSON.stringify(handle)}::jsonb
    from (select from database_restore where organization_id = ${claim.organization_id} and id = ${claim.id}
      and claim_token = ${claim.token} and lease_until > clock_timestamp() for update) held
    where s.organization_id = ${claim.organization_id} and s.id = ${claim.database_id}`.execute(db);
  requireHeld((numAffectedRows ?? 0n) > 0n);
}

/** Deletes expired backups, except those that a restore reads. */
export const expireBackups = (db: Database) =>
  db
    .deleteFrom('database_backup')
    .where('expires_at', '<=', sql<Date>`now()`)
    .where(({ not }) => not(IS_READ))
    .execute();

/** File of a backup that is gone. `last` says that its organization is, too. */
export interface BuriedFile {
  backup_id: string;
  organization_id: string;
  last: boolean;
}

/** Lists the files on a machine whose backups are gone, over all organizations: those that the store may have, or the others. */
export const listBuriedFiles = (db: Database, nodeId: string, stored: boolean) =>
  sql<BuriedFile>`
    select f.backup_id, f.organization_id, not exists (select from organization o where o.id = f.organization_id) as last
    from database_backup_file f where f.node_id = ${nodeId} and f.stored = ${stored} and f.due_at <= clock_timestamp() order by f.due_at limit 100`
    .execute(db)
    .then(({ rows }) => rows);

export const removeBuriedFile = (db: Database, backupId: string) =>
  db.deleteFrom('database_backup_file').where('backup_id', '=', backupId).execute();

/** Lists backups of all organizations whose files are on a machine and not yet in the store. `except` leaves some out. */
export const listUnsent = (db: Database, nodeId: string, except: string[]) =>
  db
    .selectFrom('database_backup')
    .select(['id', 'organization_id'])
    .where('node_id', '=', nodeId)
    .where('status', '=', 'READY')
    .where('stored_at', 'is', null)
    .where('id', '<>', sql<string>`all(${except}::uuid[])`)
    .orderBy('created_at')
    .limit(100)
    .execute();

export async function countUnsent(db: Database): Promise<number> {
  const { n } = await db
    .selectFrom('database_backup')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('node_id', 'is not', null)
    .where('status', '=', 'READY')
    .where('stored_at', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(n);
}

/** Records that the file of a backup is about to be sent to the store, or has arrived there. */
export const markSent = (
  db: Database,
  { id, organization_id }: { id: string; organization_id: string },
  step: 'sending_at' | 'stored_at',
) =>
  db
    .updateTable('database_backup')
    .set({ [step]: sql`now()` })
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .execute();

/** Lists managed databases that run and have no backup of the last day. A failed backup is tried again after an hour. */
export const listDueDaily = async (db: Database): Promise<{ id: string; organization_id: string }[]> => {
  const { rows } = await sql<{ id: string; organization_id: string }>`
    select s.id, s.organization_id from service s
    where s.kind = 'DATABASE' and s.spec ->> 'mode' = 'MANAGED' and s.wanted = 'running' and not s.deleting
      and s.release_id is not null
      and not exists (select 1 from database_backup b where b.database_id = s.id and b.origin = 'DAILY'
        and ((b.status <> 'FAILED' and b.created_at > now() - interval '1 day')
          or (b.status = 'FAILED' and b.created_at > now() - interval '1 hour')))
    order by s.id limit 500`.execute(db);
  return rows;
};

export const insertRestore = (
  db: Database,
  { replaces, ...restore }: Omit<Insertable<DB['database_restore']>, 'replaces'> & { replaces: Content[] },
) =>
  db
    .insertInto('database_restore')
    .values({ ...restore, replaces: json(replaces) })
    .execute();

export const findRestore = (db: Database, scope: Scope, databaseId: string, id: string) =>
  db
    .selectFrom('database_restore')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('database_id', '=', databaseId)
    .where('id', '=', id)
    .executeTakeFirst();

/** Queues a planned restore; false if it is no longer planned, too old, or another restore is under way. */
export async function queueRestore(db: Database, scope: Scope, { id, database_id }: RestoreRow): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('database_restore')
    .set({ status: 'QUEUED', updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('status', '=', 'PLANNED')
    .where('created_at', '>', sql<Date>`now() - interval '1 hour'`)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('database_restore as other')
            .select('other.id')
            .where('other.organization_id', '=', scope.organizationId)
            .where('other.database_id', '=', database_id)
            .where('other.status', 'in', ['QUEUED', 'RUNNING']),
        ),
      ),
    )
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
