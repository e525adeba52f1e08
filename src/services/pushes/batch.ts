import { ParsingError } from '#kernel/parsing/index.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import type { Lease } from '#platform/work/index.ts';
import { wantPolls } from '#services/pushes/branch-queries.ts';
import { barePush, readPushes, type Push } from '#services/pushes/payload.ts';
import * as queries from '#services/pushes/queries.ts';

/** Bodies that are loaded at a time. */
const MOST_LOADED = 20;

/** Call or poll, and the pushes that it tells of. */
export interface BatchRow {
  row: queries.PushRow;
  /** Pushes without the files that calls have named (`withPaths`). */
  pushes: Push[];
}

/**
 * Reads the push of a claim, and those to its repository that wait behind it: however many they are, one question for the heads of the repository
 * answers all of them. Each body is read once. A call that makes no sense ends at once. Undefined if the claim's own call has ended so.
 */
export async function readBatch(
  platform: Platform,
  claim: queries.PushClaim,
  lease: Lease,
): Promise<BatchRow[] | undefined> {
  if (!claim.environment_ids && !(await readCalls(platform, claim, lease))) return undefined;
  const rows = (await queries.listBatch(platform.db, claim)).filter(({ id }) => !claim.environment_ids || id === claim.id); // prettier-ignore
  return rows.map((row) => ({
    row,
    pushes: row.is_poll ? [barePush(row.branch!, row.before_commit, row.after_commit)] : row.pushes,
  }));
}

/** Reads the bodies that are not read yet. False if the claim's own makes no sense. */
async function readCalls(platform: Platform, claim: queries.PushClaim, lease: Lease): Promise<boolean> {
  for (;;) {
    const calls = await queries.listUnread(platform.db, claim, MOST_LOADED);
    for (const call of calls) {
      const found = await readCall(claim, call);
      lease.hold();
      if (typeof found !== 'string') await queries.storePushes(platform.db, claim, call.id, found);
      else await endUnread(platform, claim, call.id, found);
      if (typeof found === 'string' && call.id === claim.id) return false;
    }
    if (calls.length < MOST_LOADED) return true;
  }
}

/** Reads the pushes of a call. Returns the reason if it has none that makes sense. */
async function readCall(claim: queries.PushClaim, { event, body }: queries.UnreadCall): Promise<Push[] | string> {
  try {
    return await readPushes(claim.organization_id, event, body ?? '');
  } catch (error) {
    if (error instanceof ParsingError && error.kind === 'busy') throw error;
    if (error instanceof ParsingError || error instanceof TypeError) return error.message.slice(0, 500);
    throw error;
  }
}

/** Ends a call that makes no sense, and has its repository asked. */
const endUnread = (platform: Platform, claim: queries.PushClaim, id: string, error: string): Promise<void> =>
  inTransaction(systemContext(platform, 'git'), async ({ db }) => {
    await wantPolls(db, claim);
    await queries.endRows(db, claim, [id], queries.outcomeColumns(null, error));
  });

/** Adds the files that calls have named to their pushes. Others stay as they are. */
export async function withPaths(
  db: Database,
  claim: queries.PushClaim,
  batch: BatchRow[],
  pushes: Push[],
): Promise<Push[]> {
  const origins = new Map(batch.flatMap(({ row, pushes: own }) => own.map((push, at) => [push, { id: row.id, at }])));
  const ids = pushes.flatMap((push) => origins.get(push)?.id ?? []);
  const stored = ids.length > 0 ? await queries.listStoredPushes(db, claim, ids) : new Map<string, Push[]>();
  return pushes.map((push) => {
    const origin = origins.get(push);
    return origin ? { ...push, paths: stored.get(origin.id)?.[origin.at]?.paths ?? null } : push;
  });
}
