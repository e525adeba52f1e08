import type { Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import * as queries from '#platform/events/chain/queries.ts';
import { isSigned, same, sealHash, signChain, type Chain, type SignedEvent } from '#platform/events/chain/sign.ts';
import type { Noted } from '#platform/events/chain/witness.ts';

const BATCH = 2_000;
/** Milliseconds within which an event is sealed (it takes about a second); after that the sealer is at a standstill. */
const SEALED_WITHIN_MS = 600_000;
const LISTED = 1_000;

/** Event, seal or chain that is not as it was written. */
export interface Finding {
  organizationId: string;
  kind:
    /** Event whose content is not what was signed. */
    | 'changed'
    /** Event that is gone. */
    | 'missing'
    /** Event without a valid signature: written past the program, or by a release before signatures. */
    | 'unsigned'
    /** Seal that is not what was written, or has another position. */
    | 'reordered'
    /** Event that was never sealed and waits for no seal, or has waited for too long. */
    | 'unsealed'
    /** Chain whose end is not the one that was noted. */
    | 'cut';
  eventId?: string;
  sequence?: number;
  message: string;
}

export interface Verified {
  organizationId: string;
  /** Events that were compared with their seals. */
  events: number;
  /** Number of events that were written a moment ago and are not sealed yet. */
  waiting: number;
  /** Events from before there were chains: nothing tells of a change of them. */
  before: number;
  /** Findings, the first of all. */
  findings: Finding[];
  /** Number of all findings. */
  found: number;
}

/**
 * Compares the events of an organization with their signatures, their seals and the ends of the chain. `db` must show one state all the
 * time (repeatable read). It takes the same memory however many events there are.
 */
export async function verifyChain(
  platform: Pick<Platform, 'vault' | 'clock'>,
  db: Database,
  organizationId: string,
  auditedSince: Date,
  noted: Noted | undefined,
): Promise<Verified> {
  const walk = new Walk(platform, db, organizationId, auditedSince);
  await walk.sealed(noted);
  await walk.waiting();
  await walk.strays();
  const { events, unsealed: waiting, before, findings, found } = walk;
  return { organizationId, events, waiting, before, findings, found };
}

class Walk {
  readonly findings: Finding[] = [];
  found = 0;
  events = 0;
  unsealed = 0;
  /** Expected number of sealed and unsealed events since `#since`: the start of sealing, or the end of retention. */
  #expected = 0;
  /** Number of events from before `#since`. */
  #early = 0;
  #since: Date;
  before = 0;
  readonly #platform: Pick<Platform, 'vault' | 'clock'>;
  readonly #db: Database;
  readonly #organizationId: string;
  /** Events from before were dropped by the retention. */
  #droppedBefore: Date | null = null;

  constructor(platform: Pick<Platform, 'vault' | 'clock'>, db: Database, organizationId: string, auditedSince: Date) {
    this.#platform = platform;
    this.#db = db;
    this.#organizationId = organizationId;
    this.#since = auditedSince;
  }

  #found(kind: Finding['kind'], message: string, where: { eventId?: string; sequence?: number } = {}): void {
    this.found++;
    if (this.findings.length < LISTED)
      this.findings.push({ organizationId: this.#organizationId, kind, message, ...where });
  }

  /** Checks all seals in their order, each with its event. */
  async sealed(noted: Noted | undefined): Promise<void> {
    const { chain, valid } = await this.#chain();
    if (valid && chain.droppedBefore) this.#droppedBefore = chain.droppedBefore;
    if (this.#droppedBefore && this.#droppedBefore > this.#since) this.#since = this.#droppedBefore;
    let { droppedSequence: sequence, droppedHash: hash } = chain;
    const witnessed = noted && noted.sequence > sequence ? noted : undefined;
    for (;;) {
      const batch = await queries.listSealed(this.#db, this.#organizationId, sequence, BATCH);
      for (const sealed of batch) {
        if (sealed.sequence !== sequence + 1) this.#gap(sequence + 1, sealed.sequence - 1);
        // After a gap the hash before it is not known.
        this.#compare(sealed, sealed.sequence === sequence + 1 ? hash : undefined);
        if (sealed.sequence === witnessed?.sequence && !same(sealed.hash, witnessed.hash))
          this.#found('cut', 'is not the seal that this machine noted: an older state was put back and gone on from', {
            sequence: sealed.sequence,
          });
        ({ sequence, hash } = sealed);
      }
      if (batch.length < BATCH) break;
    }
    if (chain.sequence > sequence) this.#gap(sequence + 1, chain.sequence);
    else if (chain.sequence < sequence || !same(chain.hash, hash))
      this.#found('cut', `the chain is said to end with ${chain.sequence}, and ends otherwise`, { sequence });
    if (witnessed && witnessed.sequence > Math.max(sequence, chain.sequence))
      this.#found('cut', `this machine sealed up to ${witnessed.sequence}: what came after ${sequence} is gone`, {
        sequence: witnessed.sequence,
      });
  }

  async #chain(): Promise<{ chain: Chain; valid: boolean }> {
    const [stored] = await queries.listChains(this.#db, [this.#organizationId]);
    const nothing = Buffer.alloc(0);
    const fresh = { sequence: 0, hash: nothing, droppedSequence: 0, droppedHash: nothing, droppedBefore: null };
    if (!stored) return { chain: { organizationId: this.#organizationId, ...fresh }, valid: true };
    const { mac, ...chain } = stored;
    const valid = same(signChain(this.#platform.vault, chain), mac);
    if (!valid) this.#found('cut', 'the record of the ends of the chain was changed');
    return { chain, valid };
  }

  #gap(from: number, to: number): void {
    for (let sequence = from; sequence <= to && sequence < from + LISTED; sequence++)
      this.#found('missing', 'the event is gone with its seal', { sequence });
  }

  #compare(sealed: queries.SealedEvent, previous: Buffer | undefined): void {
    const { sequence, event, mac, sealEventId: eventId, sealAtMicros } = sealed;
    const where = { sequence, eventId };
    if (event === null) {
      if (this.#droppedBefore && sealAtMicros < this.#droppedBefore.getTime() * 1000) return;
      return this.#found('missing', 'the event is gone', where);
    }
    this.events++;
    this.#expect(event);
    if (mac === null) this.#found('unsigned', 'nobody signed the event', where);
    else if (!isSigned(this.#platform.vault, event, mac)) this.#found('changed', 'the event was changed', where);
    if (previous === undefined) return;
    const place = { organizationId: this.#organizationId, sequence, eventId, eventAtMicros: sealAtMicros };
    if (!same(sealHash(this.#platform.vault, place, previous, mac), sealed.hash))
      this.#found('reordered', 'the seal is not of this event in this place', where);
  }

  /** Events that wait for their seal. */
  async waiting(): Promise<void> {
    for (const { event, mac, sealEventId: eventId, waitingSince } of await queries.listUnsealed(
      this.#db,
      this.#organizationId,
    )) {
      if (event === null) {
        this.#found('missing', 'the event went before it was sealed', { eventId });
        continue;
      }
      this.unsealed++;
      this.#expect(event);
      if (mac === null) this.#found('unsigned', 'nobody signed the event', { eventId });
      else if (!isSigned(this.#platform.vault, event, mac))
        this.#found('changed', 'the event was changed', { eventId });
      if (this.#platform.clock.now().getTime() - waitingSince.getTime() > SEALED_WITHIN_MS)
        this.#found('unsealed', `the event waits for its seal since ${waitingSince.toISOString()}`, { eventId });
    }
  }

  #expect({ organization_id, atMicros }: SignedEvent): void {
    if (organization_id !== this.#organizationId) return;
    if (atMicros >= this.#since.getTime() * 1000) this.#expected++;
    else this.#early++;
  }

  /** Lists events outside of the chain. They are looked for only when the numbers differ. */
  async strays(): Promise<void> {
    const { there, before } = await queries.countEvents(this.#db, this.#organizationId, this.#since);
    this.before = Math.max(0, before - this.#early);
    if (there === this.#expected) return;
    for (const { id, at } of await queries.listStrays(this.#db, this.#organizationId, this.#since, LISTED))
      this.#found('unsealed', `the event of ${at.toISOString()} was put in without a seal`, { eventId: id });
  }
}
