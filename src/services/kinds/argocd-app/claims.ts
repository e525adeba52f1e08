import { storable } from '#kernel/storable.ts';
import { json } from '#platform/database/json.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import {
  renewalOf,
  withDate,
  type ClaimRequest,
  type RowClaim,
  type WorkReport,
  type WorkStatus,
} from '#platform/work/index.ts';

/** Seconds until an Argo CD is read again that could not be read. */
const AFTER_FAILURE_SECONDS = 60;

/** Claim on an Argo CD, which this process may read until the lease ends or the configuration changes. */
export interface Claim extends RowClaim {
  cluster_id: string;
}

/** Claims Argo CDs that are due and have no unexpired claim. */
export async function claimDue(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<Claim[]> {
  const { rows } = await sql<Claim>`
    update argo_cd set claim_token = gen_random_uuid(), lease_until = clock_timestamp() + make_interval(secs => ${leaseSeconds})
    where id in (
      select id from argo_cd where next_at <= clock_timestamp() and (lease_until is null or lease_until < clock_timestamp())
      order by next_at limit ${limit} for update skip locked)
    returning id, organization_id, cluster_id, claim_token as token`.execute(db);
  return rows;
}

export const renew = renewalOf('argo_cd');

const ofClaim = (db: Database, claim: Claim) =>
  db
    .updateTable('argo_cd')
    .where('organization_id', '=', claim.organization_id)
    .where('id', '=', claim.id)
    .where('claim_token', '=', claim.token);

const inSeconds = (seconds: number) => sql<Date>`now() + make_interval(secs => ${seconds})`;
const RELEASED = { claim_token: null, lease_until: null };

/** Tells whether the claim still holds, and locks it until the commit. */
export async function holdClaim(db: Database, claim: Claim): Promise<boolean> {
  const held = await db
    .selectFrom('argo_cd')
    .select('id')
    .where('organization_id', '=', claim.organization_id)
    .where('id', '=', claim.id)
    .where('claim_token', '=', claim.token)
    .forUpdate()
    .executeTakeFirst();
  return held !== undefined;
}

export const noteSuccess = (db: Database, claim: Claim, seconds: number) =>
  ofClaim(db, claim)
    .set({
      ...RELEASED,
      status: 'connected',
      reason: null,
      message: null,
      last_checked_at: sql`now()`,
      reached_at: sql`now()`,
      next_at: inSeconds(seconds),
    })
    .execute();

export const noteFailure = (
  db: Database,
  claim: Claim,
  failure: { reason: 'authentication_failed' | 'unreachable' | 'insufficient_permissions'; message: string },
) =>
  ofClaim(db, claim)
    .set({
      ...RELEASED,
      ...failure,
      message: storable(failure.message),
      status: 'error',
      last_checked_at: sql`now()`,
      next_at: inSeconds(AFTER_FAILURE_SECONDS),
    })
    .execute();

/** Releases the claim. The Argo CD stays due if the attempt was stopped in order, else it is due after a while. */
export const giveBack = (db: Database, claim: Claim, stoppedBy: 'order' | 'failure') =>
  ofClaim(db, claim)
    .set(stoppedBy === 'order' ? RELEASED : { ...RELEASED, next_at: inSeconds(AFTER_FAILURE_SECONDS) })
    .execute();

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

/** Metrics of the Argo CDs that are read; those that are due count as waiting. */
export const ARGO_CD_REPORT: WorkReport = {
  name: 'argo-cd',
  async status(db) {
    const isHeld = sql`(claim_token is not null and coalesce(lease_until > clock_timestamp(), false))`;
    const isDue = sql`(not ${isHeld} and next_at <= clock_timestamp())`;
    const { rows } = await sql<WorkStatus>`
      select count(*) filter (where ${isDue}) as waiting, count(*) filter (where ${isHeld}) as running,
        min(next_at) filter (where ${isDue}) as "oldestWaiting", count(*) filter (where status = 'error') as retried,
        (select json_build_object('at', last_checked_at, 'error', message) from argo_cd
          where status = 'error' and last_checked_at is not null order by last_checked_at desc limit 1) as "lastFailure"
      from argo_cd`.execute(db);
    return withDate(rows[0]!);
  },
};
