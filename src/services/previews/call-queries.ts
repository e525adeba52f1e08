import type { Insertable } from 'kysely';
import { sql, type Database, type DB } from '#platform/database/index.ts';
import {
  idsInTurn,
  inSeconds,
  leasedTable,
  type ClaimRequest,
  type RowClaim,
  type WorkReport,
} from '#platform/work/index.ts';
import { SHARE } from '#services/previews/queries.ts';
import type { ItemTable } from '#services/pushes/item-work.ts';
import type { Sender } from '#services/pushes/signature.ts';
import type { RepositoryOf } from '#services/pushes/queries.ts';

/** Channel that tells of new calls. */
export const PULL_REQUEST_CALLS = 'pull_request_calls';

/** Claim on a call, and with it on those of the same repository. */
export interface CallClaim extends RowClaim, RepositoryOf {
  sender: Sender;
  is_comment: boolean;
  body: string | null;
  attempts: number;
}

/** Stores a call, unless the same call, or another one with the same body, was stored before. */
export async function insertCall(db: Database, call: Insertable<DB['pull_request_call']>): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await db
    .insertInto('pull_request_call')
    .values(call)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows > 0n;
}

/** Counts the calls of a repository that wait, up to a limit. */
export async function countWaitingCalls(db: Database, of: RepositoryOf, limit: number): Promise<number> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*)::int as waiting from (
      select from pull_request_call
      where organization_id = ${of.organization_id} and repository = ${of.repository} and status <> 'ENDED'
      limit ${limit}) found`.execute(db);
  return rows[0]!.waiting;
}

const TABLE = leasedTable({
  table: 'pull_request_call',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`error is not null`,
});

/** Figures of calls about pull requests, for operators. */
export const CALL_REPORT: WorkReport = { name: 'pull-request-calls', status: TABLE.status };

export const CALL_TABLE: ItemTable = { report: CALL_REPORT, renew: TABLE.renew, giveBack: TABLE.giveBack };

/** Claims the oldest calls, one of each repository: calls about a repository are applied in the order of their arrival. */
export async function claimCalls(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<CallClaim[]> {
  const isDue = sql`(w.status = 'WAITING' or ${TABLE.isLeft}) and not exists (
    select from pull_request_call o where o.organization_id = w.organization_id and o.repository = w.repository
      and o.status <> 'ENDED' and o.number < w.number)`;
  const { rows } = await sql<CallClaim>`
    update pull_request_call set ${TABLE.claiming(leaseSeconds)} where id in (${idsInTurn('pull_request_call', { isDue, ...SHARE, order: 'number', limit })})
    returning id, organization_id, repository, sender, is_comment, body, attempts, claim_token as token`.execute(db);
  return rows;
}

/** Ends a call and forgets its body. `error` says why it changed nothing. Throws ClaimLost. */
export const endCall = (db: Database, claim: CallClaim, error: string | null) =>
  TABLE.end(db, claim, { status: 'ENDED', body: null, error: error?.slice(0, 500) ?? null });

/** Lets go of a call that cannot be read now; the attempt does not count. Throws ClaimLost. */
export const putOffCall = (db: Database, claim: CallClaim, seconds: number) =>
  TABLE.write(db, claim, { claim_token: null, lease_until: inSeconds(seconds), attempts: sql<number>`attempts - 1` });

/** Deletes calls that ended a month ago; later repetitions of them are refused by their age. */
export const removeOldCalls = (db: Database) =>
  db
    .deleteFrom('pull_request_call')
    .where('status', '=', 'ENDED')
    .where('ended_at', '<', sql<Date>`now() - interval '30 days'`)
    .execute();
