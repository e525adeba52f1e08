import { badRequest, conflict, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { certificateView } from '#services/capabilities/service/custom-domains/certificate.ts';
import { challengeOf } from '#services/capabilities/service/custom-domains/challenge.ts';
import { checkDomain, leadsHere, type CheckResult } from '#services/capabilities/service/custom-domains/check.ts';
import { toHostName } from '#services/capabilities/service/custom-domains/host-name.ts';
import { lookUpClaim, recordFinding, type Finding } from '#services/capabilities/service/custom-domains/proof.ts';
import * as queries from '#services/capabilities/service/custom-domains/queries.ts';
import type { HostResolver } from '#platform/dns/resolver.ts';
import type { CustomDomainInput } from '#services/capabilities/service/custom-domains/schema.ts';
import { toDomainView, validationDomainOf } from '#services/capabilities/service/custom-domains/view.ts';
import { touchService } from '#services/service/queries.ts';
import { placeOfService, refuseDeleting } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

const MAX_DOMAINS = 100;

/** Gives a service a domain, which waits for its proof. 409 if the organization has it already. */
export async function createDomain(context: Context, service: ServiceTarget, input: CustomDomainInput) {
  refuseDeleting(service);
  const domain = toHostName(input.domain, context.settings);
  const { number } = await queries.countDomains(context.db, service, service.id);
  if (number >= MAX_DOMAINS) throw badRequest(`A service has at most ${MAX_DOMAINS} custom domains.`);
  const row = await queries.insertDomain(context.db, {
    id: newId(),
    organization_id: service.organizationId,
    service_id: service.id,
    domain,
    challenge: challengeOf(await queries.findDomainKey(context.db, service), domain),
    generate_certificate: input.generate_certificate,
    use_cdn: input.use_cdn ?? false,
  });
  if (!row) throw await takenDomain(context, service, domain);
  const view = toDomainView(context, service, row);
  await changed(context, service, { type: 'CREATE', after: view });
  return view;
}

/** Changes a domain; `use_cdn` stays when it is left out. Another name has to be proven anew. */
export async function editDomain(context: Context, service: ServiceTarget, id: string, input: CustomDomainInput) {
  refuseDeleting(service);
  const present = await findDomain(context, service, id);
  const domain = toHostName(input.domain, context.settings);
  const holder = domain === present.domain ? undefined : await queries.findHolderOfDomain(context.db, service, domain);
  if (holder) throw await takenDomain(context, service, domain);
  const change = {
    domain,
    generate_certificate: input.generate_certificate,
    use_cdn: input.use_cdn ?? present.use_cdn,
    ...(domain === present.domain ? {} : await newClaim(context, service, domain)),
  };
  const row = await writeDomain(() => queries.updateDomain(context.db, service, id, change), domain);
  const view = toDomainView(context, service, row);
  await changed(context, service, { type: 'UPDATE', before: toDomainView(context, service, present), after: view });
  return view;
}

const newClaim = async (context: Context, service: ServiceTarget, domain: string): Promise<queries.DomainClaim> => ({
  challenge: challengeOf(await queries.findDomainKey(context.db, service), domain),
  validated_at: null,
  claimed_at: context.clock.now(),
  proof_state: 'PENDING',
  proof_checked_at: null,
  proven_at: null,
  proof_missing_since: null,
  proof_error: null,
  certificate_state: null,
  certificate_expires_at: null,
  certificate_error: null,
});

export async function removeDomain(context: Context, service: ServiceTarget, id: string): Promise<void> {
  const present = await findDomain(context, service, id);
  await queries.deleteDomain(context.db, service, id);
  await changed(context, service, { type: 'DELETE', before: toDomainView(context, service, present) });
}

/** The domain of a path. 404 unless it is of this service. */
export async function findDomain(context: Context, service: ServiceTarget, id: string) {
  const row = await queries.findDomain(context.db, service, service.id, id);
  if (!row) throw notFound('CustomDomain');
  return row;
}

/** Looks one domain up in the DNS and answers it with what was seen. */
export async function validateDomain(context: Context, resolver: HostResolver, service: ServiceTarget, id: string) {
  const row = await findDomain(context, service, id);
  await recordLook(context, service, await lookAt(context, resolver, service, row));
  return toDomainView(context, service, await findDomain(context, service, id));
}

/** Looks every domain of a service up in the DNS. */
export async function checkDomains(context: Context, resolver: HostResolver, service: ServiceTarget) {
  const rows = await queries.listDomainsByService(context.db, service, service.id).execute();
  const looks = await Promise.all(rows.map((row) => lookAt(context, resolver, service, row)));
  const results = [];
  // In a row: each write locks the service.
  for (const look of looks) results.push(await recordLook(context, service, look));
  return { results };
}

/** Results of the lookups for a domain, not recorded yet. */
interface Look {
  row: queries.CustomDomainRow;
  result: CheckResult;
  finding: Finding;
}

async function lookAt(
  context: Context,
  resolver: HostResolver,
  service: ServiceTarget,
  row: queries.CustomDomainRow,
): Promise<Look> {
  const [result, finding] = await Promise.all([
    checkDomain(resolver, row.domain, validationDomainOf(context, service), row.use_cdn),
    lookUpClaim(context, resolver, row),
  ]);
  return { row, result, finding };
}

async function recordLook(context: Context, service: ServiceTarget, { row, result, finding }: Look) {
  const proven = await recordFinding(context, finding);
  // A DNS that gives no answer says nothing of the domain: what was seen last stays.
  const seen = result.status === 'GENERIC_FAILURE' ? row.validated_at !== null : leadsHere(result);
  if (seen !== (row.validated_at !== null))
    await queries.recordValidation(context.db, service, row.id, seen ? context.clock.now() : null);
  const details = result.details ?? (proven?.proof_state === 'VALIDATED' ? null : (proven?.proof_error ?? null));
  const certificate = certificateView(context, row);
  return { domain_name: row.domain, status: result.status, error_details: details, certificate };
}

/** Domains are part of what a deployment applies, so that its version moves with them. */
async function changed(
  context: Context,
  service: ServiceTarget,
  entry: { type: 'CREATE' | 'UPDATE' | 'DELETE'; before?: unknown; after?: unknown },
): Promise<void> {
  await touchService(context.db, service, service.id);
  await audit(context, {
    organizationId: service.organizationId,
    ...placeOfService(service, 'CUSTOM_DOMAIN'),
    ...entry,
  });
}

/** 409 that names the service of the organization which has the domain. */
async function takenDomain(context: Context, service: ServiceTarget, domain: string) {
  const holder = await queries.findHolderOfDomain(context.db, service, domain);
  if (holder?.service_id === service.id) return conflict(`${service.name} has the domain ${domain} already.`);
  return conflict(`The domain ${domain} is taken by service ${holder?.service_id}: remove it there first.`);
}

async function writeDomain<T>(write: () => Promise<T>, domain: string): Promise<T> {
  try {
    return await write();
  } catch (error) {
    // Another request took it between the look and the write.
    if (brokenConstraint(error) === 'custom_domain_claim')
      throw conflict(`The domain ${domain} is taken by another service of the organization: remove it there first.`);
    throw error;
  }
}
