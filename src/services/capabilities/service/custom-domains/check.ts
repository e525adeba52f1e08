import type { CheckStatus } from '#services/capabilities/service/custom-domains/schema.ts';
import { ResolverError, type HostResolver } from '#platform/dns/resolver.ts';

export interface CheckResult {
  status: CheckStatus;
  /** Message with the problem and the expected state; null if there is no problem. */
  details: string | null;
}

/** CNAMEs that are followed one after the other. */
const MAX_HOPS = 8;
/** Milliseconds that the check of one domain may take: a chain of slow servers must not hold a request up. */
const DEADLINE_MS = 10_000;

/**
 * Checks whether a domain leads to this installation. It does with a CNAME of the validation domain, directly or through others, or with an
 * address of the validation domain (the apex of a domain cannot be a CNAME). Behind a CDN only the CDN's addresses are visible.
 */
export async function checkDomain(
  resolver: HostResolver,
  domain: string,
  validationDomain: string,
  behindCdn: boolean,
): Promise<CheckResult> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<CheckResult>((resolve) => {
    timer = setTimeout(
      () => resolve({ status: 'GENERIC_FAILURE', details: `The DNS took too long to answer for ${domain}.` }),
      DEADLINE_MS,
    );
  });
  return Promise.race([lookUp(resolver, domain, validationDomain, behindCdn), late]).finally(() => clearTimeout(timer));
}

async function lookUp(
  resolver: HostResolver,
  domain: string,
  validationDomain: string,
  behindCdn: boolean,
): Promise<CheckResult> {
  try {
    const chain = await followCnames(resolver, domain);
    if (chain.includes(validationDomain)) return { status: 'MATCHES_LOAD_BALANCER_HOST', details: null };
    const [found, wanted] = await Promise.all([resolver.addresses(domain), resolver.addresses(validationDomain)]);
    if (found.length === 0 && chain.length === 0)
      return {
        status: 'DOMAIN_NOT_CONFIGURED',
        details: `${domain} has no DNS record: make it a CNAME of ${validationDomain}.`,
      };
    if (found.length > 0 && (behindCdn || found.every((address) => wanted.includes(address))))
      return { status: 'RESOLVES_TO_IP', details: null };
    const place = chain.at(-1) ?? found.join(', ');
    return {
      status: 'DOMAIN_LINKED_TO_WRONG_HOST',
      details: `${domain} leads to ${place}: make it a CNAME of ${validationDomain}.`,
    };
  } catch (error) {
    if (error instanceof ResolverError) return { status: 'GENERIC_FAILURE', details: error.message };
    throw error;
  }
}

/** Returns whether the result says that the domain leads here. */
export const leadsHere = ({ status }: CheckResult): boolean =>
  status === 'MATCHES_LOAD_BALANCER_HOST' || status === 'RESOLVES_TO_IP';

/** Returns the names that the domain is an alias of, nearest first. Ends where a loop closes. */
async function followCnames(resolver: HostResolver, domain: string): Promise<string[]> {
  const chain: string[] = [];
  for (let name = domain; chain.length < MAX_HOPS;) {
    const next = (await resolver.cname(name))?.toLowerCase().replace(/\.$/, '');
    if (!next || next === domain || chain.includes(next)) break;
    chain.push((name = next));
  }
  return chain;
}
