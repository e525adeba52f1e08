import type { ClaimRequest } from '#platform/work/index.ts';

/** Calls under way in one process. */
export const SLOTS = 64;
/** Calls of one organization and to one receiver in a process, exceeded by one claim at most: slow receivers hold up few others. */
const ORGANIZATION_SLOTS = 32;
const RECEIVER_SLOTS = 8;
const CLAIM_AT_ONCE = 8;

/** Receivers and organizations with as many calls under way as is fair. */
export interface Busy {
  receiverIds: string[];
  organizationIds: string[];
}

/** Calls under way in a process, by which the next ones are chosen: a receiver that does not answer takes few of the slots. */
export class FairShare<C extends { organization_id: string }> {
  readonly #underWay = new Set<C>();
  readonly #receiverOf: (claim: C) => string;

  constructor(receiverOf: (claim: C) => string) {
    this.#receiverOf = receiverOf;
  }

  /** Claims calls that are due, a few at a time: each claim counts those before it against the limits of receivers and organizations. */
  async claim(request: ClaimRequest, claimDue: (request: ClaimRequest, busy: Busy) => Promise<C[]>): Promise<C[]> {
    const claims: C[] = [];
    try {
      while (claims.length < request.limit) {
        const limit = Math.min(CLAIM_AT_ONCE, request.limit - claims.length);
        const more = await claimDue({ ...request, limit }, this.#busyWith(claims));
        if (more.length === 0) break;
        claims.push(...more);
      }
    } catch (error) {
      // What is claimed already begins; the next look meets the error again.
      if (claims.length === 0) throw error;
    }
    return claims;
  }

  /** Counts a claim as under way until the work on it has ended. */
  async carryOut(claim: C, work: () => Promise<void>): Promise<void> {
    this.#underWay.add(claim);
    try {
      await work();
    } finally {
      this.#underWay.delete(claim);
    }
  }

  #busyWith(claims: C[]): Busy {
    const all = [...this.#underWay, ...claims];
    return {
      receiverIds: frequent(all.map(this.#receiverOf), RECEIVER_SLOTS),
      organizationIds: frequent(
        all.map((claim) => claim.organization_id),
        ORGANIZATION_SLOTS,
      ),
    };
  }
}

/** Returns the ids that occur at least so many times. */
const frequent = (ids: string[], times: number): string[] =>
  [...Map.groupBy(ids, (id) => id)].filter(([, same]) => same.length >= times).map(([id]) => id);
