import { findMemberPrincipal } from '#platform/access/people.ts';
import type { Actor, Principal } from '#platform/access/principal.ts';
import { findTokenPrincipal } from '#platform/access/tokens.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';

/** Person who arranged something to happen later, and the token that they used; without a token it was a session. */
export interface Maker {
  userId: string | null;
  tokenId?: string | null | undefined;
}

/** Returns the maker that is recorded for the arrangements of an actor. */
export const makerOf = ({ userId, tokenId }: Actor): Required<Maker> => ({ userId, tokenId: tokenId ?? null });

/**
 * Returns a maker with what they may do now: their token does no more than its scope, role and policy, and nothing once it is revoked or over.
 * Undefined where the maker has no rights left (docs/decisions/0030-rights-hold-when-something-takes-effect.md).
 */
export const findMakerPrincipal = (
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  scope: Scope,
  { userId, tokenId }: Maker,
): Promise<Principal | undefined> =>
  tokenId ? findTokenPrincipal(db, tokenId, clock.now()) : findMemberPrincipal(db, scope, userId);
