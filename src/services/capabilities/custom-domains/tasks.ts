import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import type { RecurringTask } from '#platform/jobs/schedule.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { placeOfEnvironment } from '#services/capabilities/actions/request.ts';
import { checkProof } from '#services/capabilities/custom-domains/proof.ts';
import { listDueClaims, listServicesToUnroute } from '#services/capabilities/custom-domains/queries.ts';
import { requestLastReleases } from '#services/capabilities/rollback/index.ts';
import { createResolver, type HostResolver } from '#services/parts/resolver.ts';

/** Claims that one run looks up at most, and how many of them at a time. */
const CLAIMS = 100;
const AT_ONCE = 10;

/** Looks up the TXT records of claims that are due. */
export async function checkDueProofs(platform: Platform, resolver: HostResolver, signal: AbortSignal): Promise<void> {
  const due = await listDueClaims(platform.db, CLAIMS);
  const next = async (): Promise<void> => {
    for (let claim = due.shift(); claim; claim = due.shift()) {
      signal.throwIfAborted();
      await checkProof(systemContext(platform), resolver, claim);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}

/** Deploys the last release of services once more without the domains that others have proven since. */
export async function unrouteTakenDomains(platform: Platform, signal: AbortSignal): Promise<void> {
  for (const service of await listServicesToUnroute(platform.db)) {
    signal.throwIfAborted();
    await inTransaction(systemContext(platform), async (context) => {
      const environment = await environmentTarget.find(
        context.db,
        service.environment_id,
        [service.organization_id],
        true,
      );
      if (environment) await requestLastReleases(context, placeOfEnvironment(environment), [service.id]);
    });
  }
}

export const CUSTOM_DOMAIN_TASKS: RecurringTask[] = [
  {
    name: 'custom-domain-proofs',
    everySeconds: 60,
    run: (platform, signal) => checkDueProofs(platform, createResolver(platform.settings.dnsServers), signal),
  },
  { name: 'taken-custom-domains', everySeconds: 60, run: unrouteTakenDomains },
];
