import { newId } from '#kernel/ids.ts';
import { isSecret, makeSecretText, parseSecretText } from '#platform/access/secret-text.ts';
import type { Context } from '#platform/context.ts';
import { signInPage } from '#platform/settings/address.ts';
import * as queries from '#resources/sign-in/queries.ts';

const PREFIX = 'ql';
const VALID_MS = 24 * 3600_000;

/** Link of a person, as its secret finds it. */
export type FoundLink = NonNullable<Awaited<ReturnType<typeof queries.findLink>>>;

/**
 * Makes the one-time link by which a person sets name and password, for 24 hours; an earlier link of theirs ends. Only whoever has the
 * installation in hand may: it gives everything that the person may do.
 */
export async function makeLink(context: Context, userId: string): Promise<{ url: string; expiresAt: Date }> {
  const id = newId();
  const { text, hash } = makeSecretText(PREFIX, id);
  const now = context.clock.now();
  const expiresAt = new Date(now.getTime() + VALID_MS);
  const link = { id, user_id: userId, secret_hash: hash, created_at: now, expires_at: expiresAt };
  await queries.saveLink(context.db, link);
  return { url: signInPage(context.settings, text), expiresAt };
}

/** Returns the one-time link of a secret; undefined once it was used, replaced or is too old. */
export async function findLink(context: Context, text: string, lock = false): Promise<FoundLink | undefined> {
  const parts = parseSecretText(PREFIX, text);
  const row = parts && (await queries.findLink(context.db, parts.id, lock));
  if (!row || !isSecret(row.secret_hash, parts.secret)) return undefined;
  return row.expires_at > context.clock.now() ? row : undefined;
}
