import type { Platform } from '#platform/context.ts';
import type { Database, Transaction } from '#platform/database/index.ts';
import { lockInTransaction } from '#platform/database/locks.ts';
import * as queries from '#platform/events/chain/queries.ts';
import { same, signChain } from '#platform/events/chain/sign.ts';

/** Chains that one transaction changes, under the lock that sealing waits for. */
const CHAINS = 100;
/** Seals that one transaction deletes. */
const SEALS = 5_000;

/**
 * Tells the chains that retention drops events from before a moment: seals at the front stop counting. Chains with a wrong signature stay
 * as they are, for `audit verify` to report. Returns once all chains know; events are dropped afterwards, so that none is missed in
 * between.
 */
export async function dropFromChains({ db, vault }: Pick<Platform, 'db' | 'vault'>, before: Date): Promise<void> {
  for (let after: string | null = null; ;) {
    const last: string | undefined = await db.transaction().execute(async (inside) => {
      await lockInTransaction(inside, 'chains');
      const chains = await queries.listChainsDroppedBefore(inside, before, after, CHAINS);
      for (const { mac, ...chain } of chains)
        if (same(signChain(vault, chain), mac)) await dropFromChain(inside, vault, chain, before);
      return chains.length < CHAINS ? undefined : chains.at(-1)!.organizationId;
    });
    if (last === undefined) return;
    after = last;
  }
}

async function dropFromChain(
  db: Transaction,
  vault: Platform['vault'],
  chain: Omit<queries.StoredChain, 'mac'>,
  before: Date,
): Promise<void> {
  const last = await queries.findLastDropped(db, chain.organizationId, before);
  const dropped = {
    ...chain,
    droppedBefore: before,
    ...(last ? { droppedSequence: last.sequence, droppedHash: last.hash } : {}),
  };
  await queries.saveChain(db, { ...dropped, mac: signChain(vault, dropped) });
}

/** Deletes dropped seals in batches, except those in partitions that were dropped as a whole. */
export async function deleteDroppedSeals(db: Database, signal?: AbortSignal): Promise<void> {
  for (let gone = SEALS; gone === SEALS;) {
    signal?.throwIfAborted();
    gone = await queries.deleteDroppedSeals(db, SEALS);
  }
}
