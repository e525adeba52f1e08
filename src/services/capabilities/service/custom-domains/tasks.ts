import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { placeOfEnvironment } from '#services/capabilities/service/actions/request.ts';
import { lookUpClaim, recordFinding, type Finding } from '#services/capabilities/service/custom-domains/proof.ts';
import { listDueClaims, listServicesToUnroute } from '#services/capabilities/service/custom-domains/queries.ts';
import { requestLastReleases } from '#services/capabilities/service/rollback/index.ts';
import { createResolver, type HostResolver } from '#platform/dns/resolver.ts';

/** Claims that one run looks up at most, and how many of them at a time. */
const CLAIMS = 100;
const AT_ONCE = 10;

/**
 * Looks up the TXT records of due claims, several at a time, and writes the results one after another. Each write locks the claim's
 * service. A claim that cannot be checked becomes due again and delays no other.
 */
export async function checkDueProofs(platform: Platform, resolver: HostResolver, signal: AbortSignal): Promise<void> {
  const context = systemContext(platform);
  const due = await listDueClaims(platform.db, CLAIMS);
  const findings: Finding[] = [];
  const next = async (): Promise<void> => {
    for (let claim = due.shift(); claim; claim = due.shift()) {
      signal.throwIfAborted();
      const of = claim;
      await tolerate(platform, of, async () => void findings.push(await lookUpClaim(context, resolver, of)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  for (const finding of findings) {
    signal.throwIfAborted();
    await tolerate(platform, finding.claim, () => recordFinding(context, finding));
  }
}

async function tolerate(platform: Platform, claim: Finding['claim'], work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const ids = { customDomainId: claim.id, serviceId: claim.service_id };
    platform.log.warn({ err: error, ...ids }, 'cannot check the proof of a custom domain');
  }
}

/**
 * Deploys the last release of services again without the domains that other services have proven since. A service that cannot be deployed
 * is tried again later and delays no other.
 */
export async function unrouteTakenDomains(platform: Platform, signal: AbortSignal): Promise<void> {
  for (const service of await listServicesToUnroute(platform.db)) {
    signal.throwIfAborted();
    try {
      await inTransaction(systemContext(platform), (context) => unroute(context, service));
    } catch (error) {
      platform.log.warn({ err: error, serviceId: service.id }, 'cannot take the route of a taken custom domain away');
    }
  }
}

async function unroute(
  context: Context,
  service: { id: string; organization_id: string; environment_id: string },
): Promise<void> {
  const at = [service.organization_id];
  const environment = await environmentTarget.find(context.db, service.environment_id, at, { lock: true });
  if (!environment) return;
  // Requested even while the cluster is locked: the route then moves to the other service as soon as the lock is lifted.
  const place = { ...placeOfEnvironment(environment), clusterLocked: false };
  await requestLastReleases(context, place, [service.id]);
}

export const CUSTOM_DOMAIN_TASKS: RecurringTask[] = [
  {
    name: 'custom-domain-proofs',
    everySeconds: 60,
    run: (platform, signal) => checkDueProofs(platform, createResolver(platform.settings.dnsServers), signal),
  },
  { name: 'taken-custom-domains', everySeconds: 60, run: unrouteTakenDomains },
];
