import { timingSafeEqual } from 'node:crypto';
import type { Selectable } from 'kysely';
import { sql, type DB } from '#platform/database/index.ts';
import type { Vault } from '#platform/vault/index.ts';

type Event = Omit<Selectable<DB['audit_event']>, 'mac' | 'at'>;

/** Columns that the signature of an event covers: all of them (a test compares them with the table's). Another set is another format. */
export const SIGNED_COLUMNS = [
  'id',
  'organization_id',
  'event_type',
  'target_type',
  'target_id',
  'target_name',
  'sub_target_type',
  'project_id',
  'project_name',
  'environment_id',
  'environment_name',
  'triggered_by',
  'triggered_by_id',
  'origin',
  'user_agent',
  'change',
  'original_change',
  'request_id',
] as const satisfies (keyof Event)[];

/** Event as it is signed. `at` is in microseconds since 1970, as exactly as PostgreSQL keeps it. */
export type SignedEvent = Pick<Event, (typeof SIGNED_COLUMNS)[number]> & { atMicros: number };

/** `atMicros` of a row. */
export const microsOf = (column: string) => sql<number>`(extract(epoch from ${sql.ref(column)}) * 1000000)::bigint`;

/** First byte of a signature: its number stands for the signed columns and their order. */
const FORMAT = Buffer.from([1]);

/** Returns the signature of an event. `change` and `original_change` are values, not text. */
export function signEvent(vault: Vault, event: SignedEvent): Buffer {
  const values = SIGNED_COLUMNS.map((column) => (event[column] === null ? null : sorted(event[column])));
  return Buffer.concat([FORMAT, vault.sign(`event\n${event.atMicros}\n${JSON.stringify(values)}`)]);
}

/** Returns whether an event still has the content that was signed. */
export const isSigned = (vault: Vault, event: SignedEvent, mac: Buffer): boolean => same(signEvent(vault, event), mac);

export const same = (one: Buffer, other: Buffer): boolean => one.length === other.length && timingSafeEqual(one, other);

/** Keys of objects in order: jsonb keeps another than the one that was written. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, part]) => [key, sorted(part)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Seal without its hash. */
export interface SealPlace {
  organizationId: string;
  sequence: number;
  eventId: string;
  eventAtMicros: number;
}

/** Computes the hash of a seal from the hash before it. `mac` is the signature of its event, null where the event has none. */
export const sealHash = (vault: Vault, place: SealPlace, previous: Buffer, mac: Buffer | null): Buffer =>
  vault.sign(
    `seal\n${place.organizationId}\n${place.sequence}\n${place.eventId}\n${place.eventAtMicros}\n${mac?.toString('hex') ?? ''}\n${previous.toString('hex')}`,
  );

/** Ends of an organization's chain. */
export interface Chain {
  organizationId: string;
  sequence: number;
  hash: Buffer;
  droppedSequence: number;
  droppedHash: Buffer;
  droppedBefore: Date | null;
}

export const signChain = (vault: Vault, chain: Chain): Buffer =>
  vault.sign(
    `chain\n${chain.organizationId}\n${chain.sequence}\n${chain.hash.toString('hex')}\n${chain.droppedSequence}\n${chain.droppedHash.toString('hex')}\n${chain.droppedBefore?.toISOString() ?? ''}`,
  );
