import { sql, type Database } from '#platform/database/index.ts';
import { AUDIT_KEY, dataKeyPlace, type Vault } from '#platform/vault/index.ts';
import { CANARY } from '#platform/vault/key.ts';

/** Rows that are read at a time. */
const BATCH = 200;

/** Value that the installation's own key encrypts. */
interface Sealed {
  place: string;
  sealed: Buffer;
  /** Writes the newly sealed value, unless the row has changed meanwhile. */
  replace(fresh: Buffer): Promise<unknown>;
}

interface OwnValues {
  /** Sealed bytes in a row of the table. */
  bytes: ReturnType<typeof sql<Buffer>>;
  table: 'installation' | 'organization' | 'idempotency_record';
  /** Lists a batch of the values that another key than the given one encrypts. */
  list(db: Database, keyId: string): Promise<Sealed[]>;
}

/** Id of the key in sealed bytes (index.ts, the layout). */
const keyIn = (bytes: OwnValues['bytes']) => sql<string>`encode(substring(${bytes} from 2 for 4), 'hex')`;

const CANARY_BYTES = sql<Buffer>`canary`;
const AUDIT_KEY_BYTES = sql<Buffer>`audit_key`;
const DATA_KEY_BYTES = sql<Buffer>`data_key`;
const ANSWER_BYTES = sql<Buffer>`decode(body, 'base64')`;

/**
 * All that the installation's own key encrypts (a test compares it with the places that do so). The canary first: a machine that lacks
 * the new key is refused at its start rather than in the middle of its work.
 */
const OWN_VALUES: OwnValues[] = [
  {
    table: 'installation',
    bytes: CANARY_BYTES,
    list: async (db, keyId) => {
      const rows = await db
        .selectFrom('installation')
        .select(sql<Buffer>`canary`.as('canary'))
        .where('canary', 'is not', null)
        .where(keyIn(CANARY_BYTES), '<>', keyId)
        .execute();
      return rows.map(({ canary }) => ({
        place: CANARY,
        sealed: canary,
        replace: (fresh) =>
          db.updateTable('installation').set({ canary: fresh }).where('canary', '=', canary).execute(),
      }));
    },
  },
  {
    table: 'installation',
    bytes: AUDIT_KEY_BYTES,
    list: async (db, keyId) => {
      const rows = await db
        .selectFrom('installation')
        .select(AUDIT_KEY_BYTES.as('audit_key'))
        .where('audit_key', 'is not', null)
        .where(keyIn(AUDIT_KEY_BYTES), '<>', keyId)
        .execute();
      return rows.map(({ audit_key }) => ({
        place: AUDIT_KEY,
        sealed: audit_key,
        replace: (fresh) =>
          db.updateTable('installation').set({ audit_key: fresh }).where('audit_key', '=', audit_key).execute(),
      }));
    },
  },
  {
    table: 'organization',
    bytes: DATA_KEY_BYTES,
    list: async (db, keyId) => {
      const rows = await db
        .selectFrom('organization')
        .select(['id', 'data_key'])
        .where(keyIn(DATA_KEY_BYTES), '<>', keyId)
        .limit(BATCH)
        .execute();
      return rows.map(({ id, data_key }) => ({
        place: dataKeyPlace(id),
        sealed: data_key,
        replace: (fresh) =>
          db
            .updateTable('organization')
            .set({ data_key: fresh })
            .where('id', '=', id)
            .where('data_key', '=', data_key)
            .execute(),
      }));
    },
  },
  {
    table: 'idempotency_record',
    bytes: ANSWER_BYTES,
    list: async (db, keyId) => {
      const rows = await db
        .selectFrom('idempotency_record')
        .select(['principal_id', 'key', ANSWER_BYTES.as('sealed')])
        .where('body', 'is not', null)
        .where(keyIn(ANSWER_BYTES), '<>', keyId)
        .limit(BATCH)
        .execute();
      return rows.map(({ principal_id, key, sealed }) => ({
        place: answerPlace(principal_id, key),
        sealed,
        replace: (fresh) =>
          db
            .updateTable('idempotency_record')
            .set({ body: fresh.toString('base64') })
            .where('principal_id', '=', principal_id)
            .where('key', '=', key)
            .where(ANSWER_BYTES, '=', sealed)
            .execute(),
      }));
    },
  },
];

/** Place of the answer that is kept for an Idempotency-Key. */
export const answerPlace = (principalId: string, key: string): string => `idempotency_record/${principalId}/${key}`;

/** Returns the number of values that each key encrypts, by its id; keys that encrypt nothing are left out. */
export async function countByKey(db: Database): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { table, bytes } of OWN_VALUES) {
    const { rows } = await sql<{ key: string; values: number }>`
      select ${keyIn(bytes)} as key, count(*) as values from ${sql.table(table)} where ${bytes} is not null group by 1`.execute(
      db,
    );
    for (const { key, values } of rows) counts.set(key, (counts.get(key) ?? 0) + values);
  }
  return counts;
}

/**
 * Seals everything anew that an older key encrypts, with the first of the key file: only what the installation's own key seals; the
 * values of organizations keep their data keys. May be broken off and begun again at any time, by several processes at once, while
 * others read and write. Answers how many values were sealed anew. Throws where a value's key is not there.
 */
export async function rewrapOlder(db: Database, vault: Vault, signal?: AbortSignal): Promise<number> {
  let done = 0;
  for (const values of OWN_VALUES)
    for (;;) {
      signal?.throwIfAborted();
      const [current] = vault.keyIds();
      const batch = await values.list(db, current!);
      if (batch.length === 0) break;
      for (const { place, sealed, replace } of batch) await replace(vault.rewrap(place, sealed));
      done += batch.length;
    }
  return done;
}

/** Values that another key than the first of the key file encrypts. */
export async function countOlder(db: Database, vault: Vault): Promise<number> {
  const [current] = vault.keyIds();
  const counts = await countByKey(db);
  return [...counts].reduce((sum, [key, values]) => (key === current ? sum : sum + values), 0);
}
