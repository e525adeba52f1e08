import { hash } from 'node:crypto';
import { ResolverError, type HostResolver } from '#platform/dns/resolver.ts';

/** Label below a custom domain at which its TXT record stands. */
export const CHALLENGE_LABEL = '_quarterdeck-challenge';

/** TXT record that proves to which organization a domain belongs. */
export interface ChallengeRecord {
  type: 'TXT';
  name: string;
  value: string;
}

/** Proof of a domain that no other organization can show: the same for each claim of this one, so that a domain can move. */
export const challengeOf = (domainKey: string, domain: string): string =>
  hash('sha256', `${domainKey}/${domain}`).slice(0, 40);

export const recordOf = ({ domain, challenge }: { domain: string; challenge: string }): ChallengeRecord => ({
  type: 'TXT',
  name: `${CHALLENGE_LABEL}.${domain}`,
  value: `quarterdeck-domain=${challenge}`,
});

/** Result of one lookup of a record. `found` is null where the DNS gave no answer, which says nothing of the domain. */
export interface Proof {
  found: boolean | null;
  /** Message with the problem and the expected record; null if the record is there. */
  error: string | null;
}

/** Looks up the TXT record of a claim. */
export async function lookUpProof(
  resolver: HostResolver,
  claim: { domain: string; challenge: string },
): Promise<Proof> {
  const { name, value } = recordOf(claim);
  try {
    const values = await resolver.txt(name);
    if (values.includes(value)) return { found: true, error: null };
    const state = values.length === 0 ? `${name} has no TXT record` : `No TXT record of ${name} has the right value`;
    return { found: false, error: `${state}: create one with the value ${value}.` };
  } catch (error) {
    if (error instanceof ResolverError) return { found: null, error: error.message };
    throw error;
  }
}
