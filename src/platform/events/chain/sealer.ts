import type { Platform } from '#platform/context.ts';
import type { Transaction } from '#platform/database/index.ts';
import { tryLockInTransaction } from '#platform/database/locks.ts';
import * as queries from '#platform/events/chain/queries.ts';
import { same, sealHash, signChain, type Chain } from '#platform/events/chain/sign.ts';
import type { Head, Witness } from '#platform/events/chain/witness.ts';
import { READ_ONLY_CODE } from '#platform/installation/index.ts';
import type { Vault } from '#platform/vault/index.ts';

const POLL_MS = 1_000;
const BATCH = 1_000;
/** Milliseconds between two complaints about a broken chain. */
const COMPLAIN_MS = 600_000;

/**
 * Seals waiting events in batches, each in one transaction: a kill leaves a batch sealed whole or not at all. One process at a time over
 * all replicas. Writers do not seal: a chain that each of them lengthens would make an organization's writers queue up.
 */
export class AuditSealer {
  readonly #platform: Platform;
  readonly #witness: Witness | undefined;
  readonly #complained = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #sealing: Promise<void> | undefined;
  #stopped = false;

  /** The witness keeps the ends of chains outside the database. */
  constructor(platform: Platform, witness?: Witness) {
    this.#platform = platform;
    this.#witness = witness;
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), POLL_MS);
  }

  /** Stops the sealer, after the batch under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#sealing;
  }

  /** Seals what waits now. */
  async sealAll(): Promise<void> {
    while (!this.#stopped && (await queries.hasUnsealed(this.#platform.db))) {
      const heads = await this.#platform.db.transaction().execute((db) => this.#sealBatch(db));
      if (heads === undefined) return; // Another process is at it.
      this.#witness?.note(heads);
      if (heads.length === 0) return; // What waits belongs to chains that are broken.
    }
  }

  #look(): void {
    this.#sealing ??= this.sealAll()
      .catch((error: unknown) => {
        // What a restored database has waiting is sealed when its state was accepted.
        if ((error as { code?: string }).code === READ_ONLY_CODE) return;
        this.#platform.log.warn({ err: error }, 'cannot seal audit events at the moment');
      })
      .finally(() => (this.#sealing = undefined));
  }

  async #sealBatch(db: Transaction): Promise<Head[] | undefined> {
    if (!(await tryLockInTransaction(db, 'chains'))) return undefined;
    const { vault, clock } = this.#platform;
    const broken = await this.#brokenChains(db);
    const waiting = await queries.takeUnsealed(db, BATCH, broken);
    const byOrganization = Map.groupBy(waiting, ({ organizationId }) => organizationId);
    const chains = await chainsOf(db, [...byOrganization.keys()]);
    const seals: queries.Seal[] = [];
    for (const [organizationId, events] of byOrganization) {
      const chain = chains.get(organizationId)!;
      for (const { mac, ...event } of events) {
        const place = { ...event, sequence: chain.sequence + 1 };
        chain.hash = sealHash(vault, place, chain.hash, mac);
        chain.sequence = place.sequence;
        seals.push({ ...place, hash: chain.hash });
      }
      await queries.saveChain(db, { ...chain, mac: signChain(vault, chain) });
    }
    if (seals.length > 0) await queries.insertSeals(db, seals, clock.now());
    return [...chains.values()];
  }

  /** Organizations whose chain is not what we left: lengthening it would make it look sound. */
  async #brokenChains(db: Transaction): Promise<string[]> {
    const broken: string[] = [];
    for (const organizationId of await queries.listWaiting(db)) {
      const [chain] = await queries.listChains(db, [organizationId]);
      if (await isWhole(db, this.#platform.vault, organizationId, chain)) continue;
      broken.push(organizationId);
      if (Date.now() - (this.#complained.get(organizationId) ?? -Infinity) < COMPLAIN_MS) continue;
      this.#complained.set(organizationId, Date.now());
      this.#platform.log.error(
        { organizationId },
        'the chain of audit events was tampered with and is not lengthened: run `quarterdeck audit verify`',
      );
    }
    return broken;
  }
}

/** Returns whether a chain is signed and ends in its last seal; a chain that does not exist yet has no seals. */
async function isWhole(
  db: Transaction,
  vault: Vault,
  organizationId: string,
  chain: queries.StoredChain | undefined,
): Promise<boolean> {
  if (!chain) return (await queries.findSealHash(db, organizationId, 1)) === undefined;
  if (!same(signChain(vault, chain), chain.mac)) return false;
  if (chain.sequence === chain.droppedSequence) return same(chain.hash, chain.droppedHash);
  const last = await queries.findSealHash(db, organizationId, chain.sequence);
  return last !== undefined && same(last, chain.hash);
}

async function chainsOf(db: Transaction, organizationIds: string[]): Promise<Map<string, Chain>> {
  const known = new Map((await queries.listChains(db, organizationIds)).map((chain) => [chain.organizationId, chain]));
  return new Map(organizationIds.map((id) => [id, known.get(id) ?? newChain(id)]));
}

const NOTHING = Buffer.alloc(0);

const newChain = (organizationId: string): Chain => ({
  organizationId,
  sequence: 0,
  hash: NOTHING,
  droppedSequence: 0,
  droppedHash: NOTHING,
  droppedBefore: null,
});
