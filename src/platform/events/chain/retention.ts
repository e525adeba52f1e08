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
 * Tells the chains that the retention drops the events from before a moment: what is missing of them is right from then on, and seals at the
 * front count no more. A chain whose signature is wrong is left as it is, for `audit verify` to tell of. Returns once all chains know of it:
 * events are dropped afterwards, so that none is missed in between.
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

/** Deletes the seals that their chains dropped and that lie in no partition that went as a whole, some at a time. */
export async function deleteDroppedSeals(db: Database, signal?: AbortSignal): Promise<void> {
  for (let gone = SEALS; gone === SEALS;) {
    signal?.throwIfAborted();
    gone = await queries.deleteDroppedSeals(db, SEALS);
  }
}
