import { AppError } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import {
  deriveSecretText,
  isSecret,
  makeSecretText,
  parseSecretText,
  type SecretParts,
} from '#platform/access/secret-text.ts';
import type { Context } from '#platform/context.ts';
import { signInPage } from '#platform/settings/address.ts';
import * as queries from '#resources/sign-in/queries.ts';

const PREFIX = 'ql';
const VALID_MS = 24 * 3600_000;
/** Prefix of links that are mailed on request: whoever reads the mail later than its owner finds them useless. */
const RECOVERY_PREFIX = 'qr';
/** Milliseconds for which mailed links are valid. */
export const MAILED_MS = 3600_000;

/** Link of a person, as its secret finds it. */
export interface FoundLink {
  user_id: string;
  expires_at: Date;
}

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

/**
 * Returns the link that a person is mailed for a forgotten password, for one hour. A valid one stays and is mailed again: who asks for others
 * in their name would end each of theirs. The sign-in of the person is locked.
 */
export async function makeRecoveryLink(context: Context, userId: string): Promise<{ id: string; isNew: boolean }> {
  const now = context.clock.now();
  const present = await queries.findRecoveryLinkOf(context.db, userId);
  if (present && present.expires_at.getTime() - now.getTime() > MAILED_MS / 4) return { id: present.id, isNew: false };
  const id = newId();
  const { hash } = deriveSecretText(context.vault, RECOVERY_PREFIX, id);
  const expires = new Date(now.getTime() + MAILED_MS);
  await queries.insertRecoveryLink(context.db, {
    id,
    user_id: userId,
    secret_hash: hash,
    created_at: now,
    expires_at: expires,
  });
  return { id, isNew: true };
}

/** Returns the address of a mailed link, with the secret that its id gives. */
export const addressOfRecovery = ({ vault, settings }: Context, id: string): string =>
  signInPage(settings, deriveSecretText(vault, RECOVERY_PREFIX, id).text);

/** Returns the one-time link of a secret; undefined once it was used, replaced or is too old. */
export async function findLink(context: Context, text: string, lock = false): Promise<FoundLink | undefined> {
  const mailed = parseSecretText(RECOVERY_PREFIX, text);
  const parts = mailed ?? parseSecretText(PREFIX, text);
  if (!parts) return undefined;
  return valid(
    context,
    parts,
    await (mailed ? queries.findRecoveryLink : queries.findLink)(context.db, parts.id, lock),
  );
}

/** Returns the link that the id of a secret has found; undefined if it is another's or too old. */
export function valid<Link extends { secret_hash: Buffer; expires_at: Date }>(
  { clock }: Context,
  { secret }: SecretParts,
  link: Link | undefined,
): Link | undefined {
  return link && isSecret(link.secret_hash, secret) && link.expires_at > clock.now() ? link : undefined;
}

/** Error for a link that is no longer valid, or never was. */
export const notFoundLink = () =>
  new AppError(
    'not_found',
    'The link is not valid: it was used already, was replaced by another, or is too old. Ask for a new one.',
  );
