import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listLinks } from '#services/capabilities/service/links/list.ts';
import { LinkList } from '#services/capabilities/service/links/schema.ts';
import { holderOf, type Kind } from '#services/kind.ts';

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
