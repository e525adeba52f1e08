import type { Platform } from '#platform/context.ts';
import type { Transaction } from '#platform/database/index.ts';
import * as queries from '#platform/events/chain/queries.ts';
import { same, signChain } from '#platform/events/chain/sign.ts';

/**
 * Tells the chains that the retention drops the events from before a moment, in its transaction: what is missing of them is right from then
 * on, and seals at the front go with them. A chain whose signature is wrong is left as it is, for `audit verify` to tell of.
 */
export async function dropFromChains(db: Transaction, { vault }: Pick<Platform, 'vault'>, before: Date): Promise<void> {
  await queries.lockChains(db);
  for (const { mac, ...chain } of await queries.listChainsDroppedBefore(db, before)) {
    if (!same(signChain(vault, chain), mac)) continue;
    const last = await queries.findLastDropped(db, chain.organizationId, before);
    if (last) {
      await queries.deleteSealsUpTo(db, chain.organizationId, last.sequence);
      chain.droppedSequence = last.sequence;
      chain.droppedHash = last.hash;
    }
    chain.droppedBefore = before;
    await queries.saveChain(db, { ...chain, mac: signChain(vault, chain) });
  }
}
