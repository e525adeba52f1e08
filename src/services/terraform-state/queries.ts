import { json } from '#platform/database/json.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { LockInfo } from '#services/terraform-state/lock-info.ts';

/** Number of versions of a state that are kept; Terraform writes one every 20 seconds while it applies. */
const KEPT_VERSIONS = 30;

export type StateRow = NonNullable<Awaited<ReturnType<typeof findState>>>;

/** Inserts the row of a service's state if it has none. */
export const insertState = (db: Database, scope: Scope, serviceId: string) =>
  db
    .insertInto('terraform_state')
    .values({ service_id: serviceId, organization_id: scope.organizationId })
    .onConflict((conflict) => conflict.column('service_id').doNothing())
    .execute();

export const findState = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('terraform_state')
    .selectAll()
    .select(sql<boolean>`coalesce(run_until > now(), false)`.as('is_open'))
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .executeTakeFirst();

/** Finds the row, and locks it against other writers until the commit. */
export const lockStateRow = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('terraform_state')
    .selectAll()
    .select(sql<boolean>`coalesce(run_until > now(), false)`.as('is_open'))
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .forUpdate()
    .executeTakeFirst();

/** Stores the credential of a run, in place of every earlier one. */
export const openRun = (
  db: Database,
  scope: Scope,
  serviceId: string,
  run: { generation: number; secret: Buffer; hash: Buffer; seconds: number },
) =>
  db
    .updateTable('terraform_state')
    .set({
      generation: run.generation,
      run_secret: run.secret,
      run_secret_hash: run.hash,
      run_until: sql`now() + make_interval(secs => ${run.seconds})`,
      updated_at: sql`now()`,
    })
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .execute();

/** Extends the credential of a run that another process has adopted. */
export const prolongRun = (db: Database, scope: Scope, serviceId: string, seconds: number) =>
  db
    .updateTable('terraform_state')
    .set({ run_until: sql`now() + make_interval(secs => ${seconds})`, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .execute();

/** Revokes the credential of a run. Changes nothing if another run has followed. */
export const closeRun = (db: Database, scope: Scope, serviceId: string, generation: number) =>
  db
    .updateTable('terraform_state')
    .set({ run_secret: null, run_secret_hash: null, run_until: null, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('generation', '=', generation)
    .execute();

export const setLock = (db: Database, scope: Scope, serviceId: string, lock: LockInfo, generation: number) =>
  db
    .updateTable('terraform_state')
    .set({ lock: json(lock), lock_id: lock.ID, lock_generation: generation, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('lock_id', 'is', null)
    .execute();

export const clearLock = (db: Database, scope: Scope, serviceId: string, lockId: string) =>
  db
    .updateTable('terraform_state')
    .set({ lock: null, lock_id: null, lock_generation: null, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('lock_id', '=', lockId)
    .execute();

/** Inserts a new version. The statement checks lock and generation again, which the caller has checked under the row's lock. */
export const insertVersion = (
  db: Database,
  scope: Scope,
  serviceId: string,
  version: { number: number; generation: number; content: Buffer | null; size: number },
) =>
  db
    .with('moved', (inner) =>
      inner
        .updateTable('terraform_state')
        .set({ version: version.number, updated_at: sql`now()` })
        .where('organization_id', '=', scope.organizationId)
        .where('service_id', '=', serviceId)
        .where('version', '=', version.number - 1)
        .where('generation', '=', version.generation)
        .returning('service_id'),
    )
    .insertInto('terraform_state_version')
    .columns(['service_id', 'organization_id', 'version', 'content', 'size', 'generation'])
    .expression((inner) =>
      inner
        .selectFrom('moved')
        .select([
          'moved.service_id',
          sql<string>`${scope.organizationId}::uuid`.as('organization_id'),
          sql<number>`${version.number}::bigint`.as('version'),
          sql<Buffer | null>`${version.content}::bytea`.as('content'),
          sql<number>`${version.size}::integer`.as('size'),
          sql<number>`${version.generation}::bigint`.as('generation'),
        ]),
    )
    .executeTakeFirst();

export const deleteOldVersions = (db: Database, scope: Scope, serviceId: string, newest: number) =>
  db
    .deleteFrom('terraform_state_version')
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .where('version', '<=', newest - KEPT_VERSIONS)
    .execute();

/** Bytes of a version that are read at a time: the driver decodes an answer in one turn of the event loop. */
const SLICE_BYTES = 2 ** 21;

/** Returns the content of a version, compressed and encrypted; null where there is no such version or it was a deletion. */
export async function readContent(db: Database, scope: Scope, serviceId: string, version: number) {
  const parts: Buffer[] = [];
  for (;;) {
    const row = await db
      .selectFrom('terraform_state_version')
      .select(
        sql<Buffer | null>`substring(content from ${parts.length * SLICE_BYTES + 1}::integer for ${SLICE_BYTES}::integer)`.as(
          'part',
        ),
      )
      .where('organization_id', '=', scope.organizationId)
      .where('service_id', '=', serviceId)
      .where('version', '=', version)
      .executeTakeFirst();
    // A version that was deleted meanwhile ends too early: what it is decrypted to is refused.
    if (!row?.part) return parts.length === 0 ? null : Buffer.concat(parts);
    parts.push(row.part);
    if (row.part.length < SLICE_BYTES) return Buffer.concat(parts);
  }
}

/** Lists the kept versions, newest first, without their content. */
export const listVersions = (db: Database, scope: Scope, serviceId: string) =>
  db
    .selectFrom('terraform_state_version')
    .select(['version', 'size', 'generation', 'created_at'])
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', serviceId)
    .orderBy('version', 'desc')
    .execute();
