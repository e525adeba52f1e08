import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { listDomainsByServices } from '#services/capabilities/custom-domains/index.ts';
import { linksOf, type LinkView } from '#services/capabilities/links/links.ts';
import { LinkList } from '#services/capabilities/links/schema.ts';
import { holderOf, type Kind } from '#services/kind.ts';
import { listAllServicesByEnvironment, type ServiceRow } from '#services/service/queries.ts';

/** Addresses of services whose kinds have ports, two statements for all of them. */
async function listLinks(context: Context, scope: Scope, kinds: Kind[], rows: ServiceRow[]): Promise<LinkView[]> {
  const domains = await listDomainsByServices(
    context.db,
    scope,
    rows.map((row) => row.id),
  );
  const byKind = new Map(kinds.map((kind) => [kind.kind as string, kind]));
  return rows.flatMap((row) => {
    const ports = byKind.get(row.kind)?.capabilities?.ports?.(row.spec) ?? [];
    const own = domains.filter((domain) => domain.service_id === row.id).map(({ domain }) => domain);
    return linksOf(context.settings, row, ports, own);
  });
}

/** Links of a kind of service. */
export function linkRoutes(kind: Kind): Route[] {
  if (!kind.capabilities?.links) return [];
  const holder = holderOf(kind);
  return [
    defineRoute({
      id: `list${holder.name}Links`,
      method: 'GET',
      path: `/${holder.path}/{${holder.param}}/link`,
      tag: `${holder.tag} Main Calls`,
      summary: 'List the addresses of a service',
      target: holder.target,
      action: 'service.read',
      query: PageQuery,
      answer: { status: 200, body: LinkList },
      handler: async (call) => slicePage(await listLinks(call, call.target, [kind], [call.target]), call.query),
    }),
  ];
}

/** Links of all services of an environment. */
export const environmentLinkRoutes = (kinds: Kind[]): Route[] => [
  defineRoute({
    id: 'listEnvironmentServicesLinks',
    method: 'GET',
    path: '/environment/{environmentId}/link',
    tag: 'Environment',
    summary: 'List the addresses of the services of an environment',
    target: environmentTarget,
    action: 'environment.read',
    query: PageQuery,
    answer: { status: 200, body: LinkList },
    handler: async (call) => {
      const rows = await listAllServicesByEnvironment(call.db, call.target, call.target.id).execute();
      return slicePage(await listLinks(call, call.target, kinds, rows), call.query);
    },
  }),
];
