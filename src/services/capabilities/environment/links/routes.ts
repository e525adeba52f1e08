import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { LinkList, listLinks } from '#services/capabilities/service/links/index.ts';
import type { Kind } from '#services/kind.ts';
import { listAllServicesByEnvironment } from '#services/service/queries.ts';

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
