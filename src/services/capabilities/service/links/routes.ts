import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { listLinks } from '#services/capabilities/service/links/list.ts';
import { LinkList } from '#services/capabilities/service/links/schema.ts';
import { holderOf, type Kind } from '#services/kind.ts';
import { listAllServicesByEnvironment } from '#services/service/queries.ts';

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
      description:
        'Answers the public web ports under the names of this installation, then the custom domains that are proven.',
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
    description: 'Answers the public web ports and proven custom domains of all services that have any.',
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
