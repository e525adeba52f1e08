import { defineRoute, type Route } from '#platform/http/route.ts';
import { PlainListOf } from '#platform/http/schema.ts';
import { serviceStatuses } from '#deployments/index.ts';
import { registryTarget } from '#resources/registry/index.ts';
import { Status } from '#services/capabilities/service/status/schema.ts';
import { listContainersOfRegistry } from '#services/kinds/container/queries.ts';

/** Endpoints that only containers have. */
export const containerRoutes: Route[] = [
  defineRoute({
    id: 'getContainerRegistryContainerStatus',
    method: 'GET',
    path: '/organization/{organizationId}/containerRegistry/{containerRegistryId}/container/status',
    tag: 'Containers',
    summary: 'List the statuses of the containers whose images are of a registry',
    description:
      'Answers one status for each container of the organization that you may read and whose image is of this registry.',
    target: registryTarget,
    action: 'containerRegistry.read',
    filtersRows: true,
    answer: { status: 200, body: PlainListOf(Status) },
    handler: async (call) => {
      const rows = await listContainersOfRegistry(call.db, call.principal, call.target, call.target.id);
      const serviceIds = rows.map((row) => row.id);
      return { results: await serviceStatuses(call.db, call.target, { serviceIds }) };
    },
  }),
];
