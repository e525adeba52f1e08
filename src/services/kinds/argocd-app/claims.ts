import { storable } from '#kernel/storable.ts';
import { json } from '#platform/database/json.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { dueTable, inSeconds, type RowClaim, type WorkReport } from '#platform/work/index.ts';

/** Seconds until an Argo CD is read again that could not be read. */
const AFTER_FAILURE_SECONDS = 60;

/** Claim on an Argo CD, which this process may read until the lease ends or the configuration changes. */
export interface Claim extends RowClaim {
  cluster_id: string;
}

const TABLE = dueTable<Claim, 'argo_cd'>({
  table: 'argo_cd',
  columns: ['cluster_id'],
  retrySeconds: AFTER_FAILURE_SECONDS,
  failure: { is: sql`status = 'error'`, at: sql.ref('last_checked_at'), text: sql.ref('message') },
});

export const { claim: claimDue, renew, hold: holdClaim, giveBack } = TABLE;

/** Metrics of the Argo CDs that are read; those that are due count as waiting. */
export const ARGO_CD_REPORT: WorkReport = { name: 'argo-cd', status: TABLE.status };

export const noteSuccess = (db: Database, claim: Claim, seconds: number) =>
  TABLE.end(db, claim, {
    status: 'connected',
    reason: null,
    message: null,
    last_checked_at: sql`now()`,
    reached_at: sql`now()`,
    next_at: inSeconds(seconds),
  });

export const noteFailure = (
  db: Database,
  claim: Claim,
  failure: { reason: 'authentication_failed' | 'unreachable' | 'insufficient_permissions'; message: string },
) =>
  TABLE.end(db, claim, {
    ...failure,
    message: storable(failure.message),
    status: 'error',
    last_checked_at: sql`now()`,
    next_at: inSeconds(AFTER_FAILURE_SECONDS),
  });

export interface Destination {
  url: string;
  name: string;
  applications: number;
}

/** Replaces the destinations of an Argo CD by those of the list; unchanged rows are not written. */
export async function replaceDestinations(db: Database, claim: Claim, destinations: Destination[]): Promise<void> {
  await db
    .deleteFrom('argo_cd_destination')
    .where('organization_id', '=', claim.organization_id)
    .where('argo_cd_id', '=', claim.id)
    .where(sql<boolean>`url <> all(${destinations.map(({ url }) => url)})`)
    .execute();
  // One JSON parameter: a statement takes 65,535 parameters at most, and thousands are slow.
  await db
    .insertInto('argo_cd_destination')
    .columns(['organization_id', 'argo_cd_id', 'url', 'name', 'applications'])
    .expression((eb) =>
      eb
        .selectFrom(
          sql<Destination>`jsonb_to_recordset(${json(destinations)}::jsonb)`.as<'one'>(
            sql`one(url text, name text, applications int)`,
          ),
        )
        .select([
          sql<string>`${claim.organization_id}::uuid`.as('organization_id'),
          sql<string>`${claim.id}::uuid`.as('argo_cd_id'),
          'one.url',
          'one.name',
          'one.applications',
        ]),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['argo_cd_id', 'url'])
        .doUpdateSet((eb) => ({ name: eb.ref('excluded.name'), applications: eb.ref('excluded.applications') }))
        .where(
          sql<boolean>`(argo_cd_destination.name, argo_cd_destination.applications) is distinct from (excluded.name, excluded.applications)`,
        ),
    )
    .execute();
}

export const listMappings = (db: Database, scope: Scope, argoCdId: string) =>
  db
    .selectFrom('argo_cd_mapping')
    .select(['url', 'cluster_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('argo_cd_id', '=', argoCdId)
    .execute();
