import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listDomainsByService } from '#services/capabilities/service/custom-domains/queries.ts';
import type { HostResolver } from '#platform/dns/resolver.ts';
import {
  CustomDomain,
  CustomDomainCheckList,
  CustomDomainList,
  CustomDomainRequest,
} from '#services/capabilities/service/custom-domains/schema.ts';
import {
  checkDomains,
  createDomain,
  editDomain,
  findDomain,
  removeDomain,
  validateDomain,
} from '#services/capabilities/service/custom-domains/service.ts';
import { toDomainView } from '#services/capabilities/service/custom-domains/view.ts';
import { holderOf, type Kind } from '#services/kind.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/** Custom domains of a kind of service. */
export function customDomainRoutes(kind: Kind, resolver: HostResolver): Route[] {
  const options = kind.capabilities?.customDomains;
  if (!options) return [];
  const holder = holderOf(kind);
  const { target } = holder;
  const tag = `${holder.tag} Custom Domain`;
  const all = `/${holder.path}/{${holder.param}}/customDomain`;
  const one = `${all}/{customDomainId}` as const;
  const current = async (call: Call<ServiceTarget, { customDomainId: string }>) =>
    toDomainView(call, call.target, await findDomain(call, call.target, call.params.customDomainId));
  return [
    defineRoute({
      id: `list${holder.name}CustomDomain`,
      method: 'GET',
      path: all,
      tag,
      summary: 'List the custom domains of a service',
      description:
        'Answers each domain with the TXT record that proves it, the state of that proof and its certificate.',
      target,
      action: 'service.read',
      query: PageQuery,
      answer: { status: 200, body: CustomDomainList },
      handler: (call) =>
        fetchPage(call.db, listDomainsByService(call.db, call.target, call.target.id), call.query, (row) =>
          toDomainView(call, call.target, row),
        ),
    }),
    defineRoute({
      id: `create${holder.name}CustomDomain`,
      method: 'POST',
      path: all,
      tag,
      summary: 'Give a service a custom domain',
      description:
        'The domain is routed once the TXT record `validation_record` shows that the organization controls it, from the next deployment on.',
      target,
      action: 'service.edit',
      body: CustomDomainRequest,
      answer: { status: 201, body: CustomDomain },
      errors: [409],
      handler: (call) => createDomain(call, call.target, call.body),
    }),
    defineRoute({
      id: `edit${holder.name}CustomDomain`,
      method: 'PUT',
      path: one,
      tag,
      summary: 'Edit a custom domain',
      description: 'Another name has to be proven anew. `use_cdn` stays when it is left out.',
      target,
      action: 'service.edit',
      body: CustomDomainRequest,
      answer: { status: 200, body: CustomDomain },
      errors: [409],
      current,
      handler: (call) => editDomain(call, call.target, call.params.customDomainId, call.body),
    }),
    defineRoute({
      id: `delete${holder.name}CustomDomain`,
      method: 'DELETE',
      path: one,
      tag,
      summary: 'Remove a custom domain',
      description:
        'The domain is no longer routed from the next deployment on, and its name is free for other services.',
      target,
      action: 'service.edit',
      answer: { status: 204, body: null },
      handler: (call) => removeDomain(call, call.target, call.params.customDomainId),
    }),
    options.one === 'status'
      ? defineRoute({
          id: `get${holder.name}CustomDomainStatus`,
          method: 'GET',
          path: `${one}/status`,
          tag,
          summary: 'Look a custom domain up in the DNS',
          description:
            'Looks up where the domain leads and the TXT record that proves it; the status is left out when both are right.',
          target,
          action: 'service.read',
          answer: { status: 200, body: CustomDomain },
          transaction: false,
          handler: (call) => validateDomain(call, resolver, call.target, call.params.customDomainId!),
        })
      : defineRoute({
          id: `get${holder.name}CustomDomain`,
          method: 'GET',
          path: one,
          tag,
          summary: 'Get a custom domain',
          description: 'Answers the TXT record that proves the domain, the state of that proof and its certificate.',
          target,
          action: 'service.read',
          answer: { status: 200, body: CustomDomain },
          handler: current,
        }),
    defineRoute({
      id: `check${holder.name}CustomDomain`,
      method: 'GET',
      path: `/${holder.path}/{${holder.param}}/checkCustomDomain`,
      tag,
      summary: 'Look every custom domain of a service up in the DNS',
      description: 'Answers for each domain whether it leads here, with the reason where it does not.',
      target,
      action: 'service.read',
      answer: { status: 200, body: CustomDomainCheckList },
      transaction: false,
      handler: (call) => checkDomains(call, resolver, call.target),
    }),
  ];
}
