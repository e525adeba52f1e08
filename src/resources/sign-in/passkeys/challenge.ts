import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { badRequest, forbidden } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { passkeySite, type PasskeySite } from '#platform/settings/address.ts';
import { takeChallenge } from '#resources/sign-in/passkeys/queries.ts';

/** Milliseconds in which a challenge may be answered. */
export const VALID_MS = 5 * 60_000;

/** Challenge with what it was made for: to sign in, to use a link, or to add a passkey in a session. */
type Purpose =
  | { purpose: 'sign-in' }
  | { purpose: 'link'; userId: string; name: string; secretHash: string }
  | { purpose: 'add'; userId: string; sessionId: string };

type Sealed<P extends Purpose = Purpose> = P & { id: string; challenge: string; expires: number };

/** Returns the site that passkeys are made for. Throws 403 where browsers make none. */
export function requireSite({ settings }: Pick<Context, 'settings'>): PasskeySite {
  const site = passkeySite(settings);
  if (!site)
    throw forbidden(
      'There are no passkeys at the address of this installation: they take a name with HTTPS, or http://localhost. Whoever operates it sets QUARTERDECK_BASE_URL.',
    );
  return site;
}

/**
 * Makes a challenge (base64url), and the cookie that brings it back from the browser that asked. Nothing is stored before it is answered, so
 * that requests of visitors fill no table. The signature keeps visitors from making or changing one.
 */
export function makeChallenge(context: Context, site: PasskeySite, purpose: Purpose) {
  const challenge = randomBytes(32).toString('base64url');
  const expires = context.clock.now().getTime() + VALID_MS;
  const text = Buffer.from(JSON.stringify({ ...purpose, id: newId(), challenge, expires })).toString('base64url');
  const isSecure = site.origin.startsWith('https:');
  const attributes = `Path=/; Max-Age=${VALID_MS / 1000}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
  const value = `${text}.${sign(context, text).toString('base64url')}`;
  return { challenge, cookie: `${cookieName(site, purpose.purpose)}=${value}; ${attributes}` };
}

/** Takes the challenge of a request, once. Throws 400 if its browser has none for this purpose, or it was answered or is too old. */
export async function answerChallenge<P extends Purpose['purpose']>(
  context: Context,
  site: PasskeySite,
  cookies: unknown,
  purpose: P,
): Promise<Sealed<Extract<Purpose, { purpose: P }>>> {
  const sealed = open(context, cookieOf(cookies, cookieName(site, purpose)));
  const isValid = sealed?.purpose === purpose && sealed.expires > context.clock.now().getTime();
  if (!isValid || !(await takeChallenge(context.db, sealed.id, new Date(sealed.expires))))
    throw badRequest(
      'This browser has no open request for a passkey: it was answered already, or is older than 5 minutes. Begin again.',
    );
  return sealed as Sealed<Extract<Purpose, { purpose: P }>>;
}

/** The prefix keeps other hosts and paths from setting the cookie; browsers take it with HTTPS only. */
const cookieName = ({ origin }: PasskeySite, purpose: Purpose['purpose']): string =>
  `${origin.startsWith('https:') ? '__Host-' : ''}quarterdeck-passkey-${purpose}`;

function cookieOf(cookies: unknown, name: string): string | undefined {
  const all = typeof cookies === 'string' ? cookies.split(';') : [];
  const found = all.map((one) => one.trim()).find((one) => one.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}

function open(context: Context, cookie: string | undefined): Sealed | undefined {
  const [text, signature, ...rest] = cookie?.split('.') ?? [];
  if (text === undefined || signature === undefined || rest.length > 0) return undefined;
  const given = Buffer.from(signature, 'base64url');
  const made = sign(context, text);
  if (given.length !== made.length || !timingSafeEqual(given, made)) return undefined;
  return JSON.parse(Buffer.from(text, 'base64url').toString()) as Sealed;
}

const sign = ({ vault }: Context, text: string): Buffer =>
  createHmac('sha256', vault.deriveKey('challenges of passkeys')).update(text).digest();
