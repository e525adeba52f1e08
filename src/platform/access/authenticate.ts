import { unauthenticated } from '#kernel/errors.ts';
import { originOf, type Actor, type Principal } from '#platform/access/principal.ts';
import type { CallerMemory } from '#platform/access/remembered.ts';
import { findSessionHere, looksLikeSession } from '#platform/access/sessions.ts';
import { looksLikeApiToken, readToken } from '#platform/access/tokens.ts';
import type { Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';

/** Verifies sessions of people; made from the OIDC settings (access/oidc.ts). */
export interface SessionVerifier {
  /** Returns the person behind a JWT, or undefined if it isn't valid. */
  find(token: string): Promise<Principal | undefined>;
}

/** Authorization header: both schemes carry both kinds of token (docs/contributing/rules.md 21). */
const HEADER = /^(?:Bearer|Token) +(\S+)$/i;

/** Caller of a request, and how surely they are known. */
export interface Caller {
  principal: Principal;
  /**
   * Set for one who was remembered: they hold only if this is the access version that the statement finds which loads what they ask
   * for. Without it they were read just now.
   */
  accessVersion?: string;
}

/** Sources of the credentials of callers. */
export interface Credentials {
  platform: Platform;
  sessions: SessionVerifier | null;
  memory: CallerMemory;
}

/** Returns the caller of a request by its `Authorization` header. Reads it now, so that an earlier revocation holds. Throws 401. */
export async function authenticate(
  { platform, sessions, memory }: Credentials,
  header: string | undefined,
  db: Database = platform.db,
): Promise<Caller> {
  const token = tokenOf(header);
  if (looksLikeSession(token)) return { principal: (await findSessionHere(platform, token)) ?? refuseSession() };
  if (!looksLikeApiToken(token)) return { principal: (await sessions?.find(token)) ?? refuse() };
  const known = (await readToken(db, token, platform.clock.now())) ?? refuse();
  memory.keep(known);
  return { principal: known.principal };
}

/** Recognizes a caller for code that checks the access version later: from memory, if the token was seen before. */
export function recognize(credentials: Credentials, header: string | undefined): Caller | Promise<Caller> {
  const token = tokenOf(header);
  return credentials.memory.find(token, credentials.platform.clock.now()) ?? authenticate(credentials, header);
}

function tokenOf(header: string | undefined): string {
  const token = HEADER.exec(header ?? '')?.[1];
  if (!token) throw unauthenticated();
  return token;
}

function refuse(): never {
  throw unauthenticated(
    'The token is invalid, expired or revoked: create another by POST /organization/{organizationId}/apiToken.',
  );
}

function refuseSession(): never {
  throw unauthenticated('The session is over or invalid: sign in again, by POST /signIn or at the page /sign-in.');
}

/** Returns the actor that events name for what the principal does. */
export const actorOf = (principal: Principal, userAgent: string | undefined): Actor => ({
  userId: principal.userId,
  ...(principal.kind === 'token' ? { tokenId: principal.id } : {}),
  name: principal.name,
  origin: originOf(userAgent),
  userAgent: userAgent ?? null,
});
