import { unauthenticated } from '#kernel/errors.ts';
import { originOf, type Actor, type Principal } from '#platform/access/principal.ts';
import { findTokenPrincipal, looksLikeApiToken } from '#platform/access/tokens.ts';
import type { Platform } from '#platform/context.ts';

/** Verifies sessions of people; made from the OIDC settings (access/oidc.ts). */
export interface SessionVerifier {
  /** The person behind a JWT, or undefined if it isn't valid. */
  find(token: string): Promise<Principal | undefined>;
}

/** Both schemes carry both kinds of token (decisions.md 21). */
const HEADER = /^(?:Bearer|Token) +(\S+)$/i;

/** The caller of a request by its `Authorization` header. Throws 401. */
export async function authenticate(
  platform: Platform,
  sessions: SessionVerifier | null,
  header: string | undefined,
): Promise<Principal> {
  const token = HEADER.exec(header ?? '')?.[1];
  if (!token) throw unauthenticated();
  const principal = looksLikeApiToken(token)
    ? await findTokenPrincipal(platform.db, token, platform.clock.now())
    : await sessions?.find(token);
  if (!principal)
    throw unauthenticated('The token is invalid, expired or revoked: create another in the organization settings.');
  return principal;
}

/** Who is written into events for what the principal does. */
export const actorOf = (principal: Principal, userAgent: string | undefined): Actor => ({
  userId: principal.userId,
  name: principal.name,
  origin: originOf(userAgent),
  userAgent: userAgent ?? null,
});
