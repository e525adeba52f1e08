import { badRequest, conflict, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { checkDomain, leadsHere } from '#services/capabilities/custom-domains/check.ts';
import { toHostName } from '#services/capabilities/custom-domains/host-name.ts';
import * as queries from '#services/capabilities/custom-domains/queries.ts';
import type { HostResolver } from '#services/parts/resolver.ts';
import type { CustomDomainInput } from '#services/capabilities/custom-domains/schema.ts';
import { hostnameOf } from '#services/parts/ports.ts';
import { touchService } from '#services/service/queries.ts';
import { placeOfService, refuseDeleting } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

const MAX_DOMAINS = 100;

/** Host name that a service's domains have to lead to: the one that its default port has by itself. */
const validationDomainOf = (context: Context, service: ServiceTarget): string =>
  `${hostnameOf(service.kind, service.id, service.spec.type)}.${context.settings.proxyDomain}`;

/** A domain as it is answered. */
export const toDomainView = (context: Context, service: ServiceTarget, row: queries.CustomDomainRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  domain: row.domain,
  generate_certificate: row.generate_certificate,
  use_cdn: row.use_cdn,
  validation_domain: validationDomainOf(context, service),
  ...(row.validated_at ? {} : { status: 'VALIDATION_PENDING' as const }),
});

/** Gives a service a domain. 409 if one of this installation has it already. */
export async function createDomain(context: Context, service: ServiceTarget, input: CustomDomainInput) {
  refuseDeleting(service);
  const domain = toHostName(input.domain, context.settings.proxyDomain);
  const { number } = await queries.countDomains(context.db, service, service.id);
  if (number >= MAX_DOMAINS) throw badRequest(`A service has at most ${MAX_DOMAINS} custom domains.`);
  const row = await queries.insertDomain(context.db, {
    id: newId(),
    organization_id: service.organizationId,
    service_id: service.id,
    domain,
    generate_certificate: input.generate_certificate,
    use_cdn: input.use_cdn ?? false,
  });
  if (!row) throw await takenDomain(context, service, domain);
  const view = toDomainView(context, service, row);
  await changed(context, service, { type: 'CREATE', after: view });
  return view;
}

/** Changes a domain; `use_cdn` stays when it is left out. Another name has to be validated anew. */
export async function editDomain(context: Context, service: ServiceTarget, id: string, input: CustomDomainInput) {
  refuseDeleting(service);
  const present = await findDomain(context, service, id);
  const domain = toHostName(input.domain, context.settings.proxyDomain);
  const holder = domain === present.domain ? undefined : await queries.findHolderOfDomain(context.db, domain);
  if (holder) throw await takenDomain(context, service, domain);
  const change = {
    domain,
    generate_certificate: input.generate_certificate,
    use_cdn: input.use_cdn ?? present.use_cdn,
    validated_at: domain === present.domain ? present.validated_at : null,
  };
  const row = await writeDomain(() => queries.updateDomain(context.db, service, id, change), domain);
  const view = toDomainView(context, service, row);
  await changed(context, service, { type: 'UPDATE', before: toDomainView(context, service, present), after: view });
  return view;
}

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
  await lookAt(context, resolver, service, row);
  return toDomainView(context, service, await findDomain(context, service, id));
}

/** Looks every domain of a service up in the DNS. */
export async function checkDomains(context: Context, resolver: HostResolver, service: ServiceTarget) {
  const rows = await queries.listDomainsByService(context.db, service, service.id).execute();
  const results = await Promise.all(rows.map((row) => lookAt(context, resolver, service, row)));
  return { results };
}

async function lookAt(context: Context, resolver: HostResolver, service: ServiceTarget, row: queries.CustomDomainRow) {
  const result = await checkDomain(resolver, row.domain, validationDomainOf(context, service), row.use_cdn);
  // A DNS that gives no answer says nothing of the domain: what was seen last stays.
  const seen = result.status === 'GENERIC_FAILURE' ? row.validated_at !== null : leadsHere(result);
  if (seen !== (row.validated_at !== null))
    await queries.recordValidation(context.db, service, row.id, seen ? context.clock.now() : null);
  return { domain_name: row.domain, status: result.status, error_details: result.details };
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

/** 409 that tells where the domain is only to whom it belongs. */
async function takenDomain(context: Context, service: ServiceTarget, domain: string) {
  const holder = await queries.findHolderOfDomain(context.db, domain);
  if (holder?.service_id === service.id) return conflict(`${service.name} has the domain ${domain} already.`);
  if (holder?.organization_id === service.organizationId)
    return conflict(`The domain ${domain} is taken by service ${holder.service_id}: remove it there first.`);
  return conflict(`The domain ${domain} is taken: a domain leads to one service of the installation only.`);
}

async function writeDomain<T>(write: () => Promise<T>, domain: string): Promise<T> {
  try {
    return await write();
  } catch (error) {
    // Another request took it between the look and the write.
    if (brokenConstraint(error) === 'custom_domain_name')
      throw conflict(`The domain ${domain} is taken: a domain leads to one service of the installation only.`);
    throw error;
  }
}
