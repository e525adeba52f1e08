import type { ServiceSnapshot } from '#deployments/index.ts';
import type { Context } from '#platform/context.ts';
import { checkDomain } from '#services/capabilities/service/custom-domains/check.ts';
import { recordOf } from '#services/capabilities/service/custom-domains/challenge.ts';
import { checkProofs } from '#services/capabilities/service/custom-domains/proof.ts';
import * as queries from '#services/capabilities/service/custom-domains/queries.ts';
import type { HostResolver } from '#platform/dns/resolver.ts';

/** Custom domains that a service is applied with, and lines for the log of its deployment. */
export interface RoutedDomains {
  domains: string[];
  warnings: string[];
}

/**
 * Chooses the custom domains that a deployment routes: those of the snapshot that the service still has and that are proven now. Claims
 * without proof are looked up once more, so that a record which was just created counts.
 */
export async function routeDomains(
  context: Context,
  resolver: HostResolver,
  organizationId: string,
  service: Pick<ServiceSnapshot, 'serviceId' | 'customDomains' | 'advancedSettings' | 'hostname'>,
): Promise<RoutedDomains> {
  const scope = { organizationId };
  if (service.customDomains.length === 0) return { domains: [], warnings: [] };
  const rows = await queries.listDomainsByService(context.db, scope, service.serviceId).execute();
  const claims = rows.filter((row) => service.customDomains.includes(row.domain));
  const unprovenBefore = claims.filter((row) => row.proof_state !== 'VALIDATED');
  const checked = await checkProofs(context, resolver, unprovenBefore);
  const present = claims
    .map((row) => (row.proof_state === 'VALIDATED' ? row : checked[unprovenBefore.indexOf(row)]))
    .filter((row) => row !== undefined);
  const proven = present.filter((row) => row.proof_state === 'VALIDATED');
  const domains = proven.map((row) => row.domain);
  await queries.addRoutedDomains(context.db, scope, service.serviceId, domains);
  const target = `${service.hostname}.${context.settings.proxyDomain}`;
  const isLookedUp = service.advancedSettings['deployment.custom_domain_check_enabled'] !== false;
  const elsewhere = isLookedUp ? await Promise.all(proven.map((row) => warnOfTarget(resolver, row, target))) : [];
  const unproven = present.filter((row) => row.proof_state !== 'VALIDATED').map(warnOfProof);
  return { domains, warnings: [...unproven, ...elsewhere.flat()] };
}

function warnOfProof(row: queries.CustomDomainRow): string {
  const { name, value } = recordOf(row);
  const error = row.proof_error ?? `create the TXT record ${name} with the value ${value}.`;
  return `The custom domain ${row.domain} is not routed, as it is not proven: ${error}`;
}

async function warnOfTarget(resolver: HostResolver, row: queries.CustomDomainRow, target: string): Promise<string[]> {
  const { details } = await checkDomain(resolver, row.domain, target, row.use_cdn);
  return details === null ? [] : [`Custom domain ${row.domain}: ${details}`];
}
