import { serialize } from '#platform/http/compile.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { ListOf, PageQuery, Pagination, Type } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import type { ShownKind } from '#services/kind.ts';
import { listAllServicesByEnvironment } from '#services/service/queries.ts';
import { toServiceView } from '#services/service/service.ts';

/**
 * Endpoints that list the services of an environment, of every kind. Each service is answered in the form of its own kind: its row names
 * the schema, so that none has to be guessed.
 */
export const serviceListRoutes = (kinds: ShownKind[]): Route[] => {
  const byKind = new Map(kinds.map((kind) => [kind.kind as string, kind]));
  const Service = Type.Unsafe<unknown>({ oneOf: kinds.map((kind) => kind.schemas.answer) });
  return [
    defineRoute({
      id: 'listServicesByEnvironmentId',
      method: 'GET',
      path: '/environment/{environmentId}/services',
      tag: 'Environment Main Calls',
      summary: 'List the services of an environment',
      description: 'Answers services of every kind together; `service_type` tells them apart.',
      target: environmentTarget,
      action: 'environment.read',
      query: PageQuery,
      answer: { status: 200, body: ListOf(Service), contentType: 'application/json' },
      handler: async (call) => {
        const query = listAllServicesByEnvironment(call.db, call.target, call.target.id);
        const { results, pagination } = await fetchPage(call.db, query, call.query, (row) => {
          const kind = byKind.get(row.kind)!;
          return serialize(kind.schemas.answer, toServiceView(call, kind, row));
        });
        return `{"results":[${results.join(',')}],"pagination":${serialize(Pagination, pagination)}}`;
      },
    }),
  ];
};
