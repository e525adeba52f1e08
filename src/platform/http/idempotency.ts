import { timingSafeEqual } from 'node:crypto';
import { conflict, invalidField } from '#kernel/errors.ts';
import { sql, type Database } from '#platform/database/index.ts';
import type { Context } from '#platform/context.ts';
import { answerPlace } from '#platform/vault/rotation.ts';

export const IDEMPOTENCY_HEADER = 'idempotency-key';

/**
 * The answer that the same request got before, within 24 hours. The record is inserted first, in the request's transaction: a second
 * request with the key waits for the first one's commit, so that one effect is all there is. Another body is 409.
 */
export async function recall(
  context: Context,
  principalId: string,
  key: string,
  fingerprint: Buffer,
): Promise<{ status: number; text: string | null } | undefined> {
  if (key.length === 0 || key.length > 255) throw invalidField('Idempotency-Key', 'must have 1 to 255 characters');
  const { db } = context;
  await db
    .deleteFrom('idempotency_record')
    .where('principal_id', '=', principalId)
    .where('key', '=', key)
    .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
    .execute();
  const inserted = await db
    .insertInto('idempotency_record')
    .values({ principal_id: principalId, key, fingerprint, status: 0 })
    .onConflict((onConflict) => onConflict.doNothing())
    .returning('key')
    .executeTakeFirst();
  if (inserted) return undefined;
  const record = await db
    .selectFrom('idempotency_record')
    .selectAll()
    .where('principal_id', '=', principalId)
    .where('key', '=', key)
    .executeTakeFirstOrThrow();
  if (!timingSafeEqual(record.fingerprint, fingerprint))
    throw conflict('This Idempotency-Key was used for another request: take a new one.');
  if (record.status === 0)
    throw conflict('The first request with this Idempotency-Key is still under way: ask again in a moment.');
  return {
    status: record.status,
    text:
      record.body === null
        ? null
        : context.vault.openOwn(answerPlace(principalId, key), Buffer.from(record.body, 'base64')),
  };
}

/** Keeps the answer, encrypted: it may hold a token that is shown once. */
export async function remember(
  context: Context,
  principalId: string,
  key: string,
  answer: { status: number; text: string | null },
): Promise<void> {
  const body =
    answer.text === null ? null : context.vault.sealOwn(answerPlace(principalId, key), answer.text).toString('base64');
  await context.db
    .updateTable('idempotency_record')
    .set({ status: answer.status, body })
    .where('principal_id', '=', principalId)
    .where('key', '=', key)
    .execute();
}

/** Deletes the record of a request that failed, so that it can be repeated. */
export const forget = (context: Context, principalId: string, key: string) =>
  context.db.deleteFrom('idempotency_record').where('principal_id', '=', principalId).where('key', '=', key).execute();

/** Removes records of answers that are no longer repeated. */
export const removeOldRecords = (db: Database) =>
  db
    .deleteFrom('idempotency_record')
    .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
    .execute();
