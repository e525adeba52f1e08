import type { Context } from '#platform/context.ts';
import { fetchPage, slicePage } from '#platform/http/paging.ts';
import { PageQuery, Type, Uuid } from '#platform/http/schema.ts';
import {
  listHistoryServices,
  listQueue,
  selectHistory,
  type HistoryDeployment,
  type HistoryOf as Of,
  type HistoryService,
} from '#deployments/index.ts';

const DEFAULT_SIZE = 20;

/** Query of the first version. */
export const V1Query = Type.Object({
  ...PageQuery.properties,
  startId: Type.Optional(Type.String({ ...Uuid, description: 'Deployment to begin with.' })),
});
/** Query of the second version. */
export const V2Query = Type.Object({
  ...PageQuery.properties,
  pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Executions on a page, 20 without.' })),
});

/** Query of either version. */
export interface HistoryQuery {
  page?: number;
  page_size?: number;
  pageSize?: number;
  startId?: string;
}

/** Reads a page of a history, with the services of its deployments in one further statement. */
export async function listHistory<View>(
  context: Context,
  scope: { organizationId: string },
  of: Of,
  ask: HistoryQuery,
  view: (row: HistoryDeployment, services: HistoryService[]) => View[],
) {
  const page = ask.page ?? 1;
  const size = ask.page_size ?? ask.pageSize ?? DEFAULT_SIZE;
  const query = selectHistory(context.db, scope, of, ask.startId);
  const { results: rows, pagination } = await fetchPage(context.db, query, { page, page_size: size }, (row) => row);
  const services = await listHistoryServices(
    context.db,
    scope,
    rows.map((row) => row.id),
    'serviceId' in of ? of.serviceId : undefined,
  );
  return {
    page,
    page_size: size,
    results: rows.flatMap((row) =>
      view(
        row,
        services.filter((service) => service.deployment_id === row.id),
      ),
    ),
    pagination,
  };
}

/** Reads a page of the requests that have not ended, in their order. */
export async function listRequests<View>(
  context: Context,
  scope: { organizationId: string },
  of: Of,
  page: PageQuery,
  view: (row: HistoryDeployment, services: HistoryService[]) => View[],
) {
  const rows = await listQueue(context.db, scope, of);
  const services = await listHistoryServices(
    context.db,
    scope,
    rows.map((row) => row.id),
    'serviceId' in of ? of.serviceId : undefined,
  );
  const byDeployment = Map.groupBy(services, (service) => service.deployment_id);
  return slicePage(
    rows.flatMap((row) => view(row, byDeployment.get(row.id) ?? [])),
    page,
  );
}
