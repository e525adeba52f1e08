import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { Cause } from '#deployments/model/errors.ts';

/** Subject of a history: an environment, a service, or several services. */
export type HistoryOf = { environmentId: string } | { serviceId: string | string[] };

export interface HistoryDeployment {
  id: string;
  environment_id: string;
  number: number;
  action: string;
  trigger: string;
  status: string;
  outcome: string | null;
  cancel_requested_at: Date | null;
  requested_by_name: string;
  origin: string;
  created_at: Date;
  updated_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
}

export interface HistoryService {
  deployment_id: string;
  service_id: string;
  kind: string;
  name: string;
  icon_uri: string;
  stage_id: string;
  stage_name: string;
  stage_position: number;
  action: string;
  sub_action: string;
  state: string;
  commit: { id: string; date: string; author: string; message: string; tag: string } | null;
  details: Record<string, unknown>;
  error: string | null;
  error_code: string | null;
  error_step: string | null;
  error_cause: Cause | null;
  started_at: Date | null;
  ended_at: Date | null;
  created_at: Date;
  updated_at: Date;
}

/** Returns a query for the deployments of an environment, or for those that have a service. */
function selectDeployments(db: Database, scope: Scope, of: HistoryOf) {
  const query = db
    .selectFrom('deployment as d')
    .select(['d.id', 'd.environment_id', 'd.number', 'd.action', 'd.trigger', 'd.status', 'd.outcome'])
    .select(['d.cancel_requested_at', 'd.requested_by_name', 'd.origin', 'd.created_at', 'd.updated_at'])
    .select(['d.started_at', 'd.ended_at'])
    .where('d.organization_id', '=', scope.organizationId);
  if ('environmentId' in of) return query.where('d.environment_id', '=', of.environmentId);
  const withService = db
    .selectFrom('deployment_service')
    .select('deployment_id')
    .where('organization_id', '=', scope.organizationId)
    .where('service_id', '=', sql<string>`any(${[of.serviceId].flat()})`);
  return query.where('d.id', 'in', withService);
}

/** Selects deployments, newest first; with `startId` from that one on. */
export function selectHistory(db: Database, scope: Scope, of: HistoryOf, startId?: string) {
  const query = selectDeployments(db, scope, of).orderBy('d.number', 'desc');
  if (startId === undefined) return query;
  const start = db
    .selectFrom('deployment')
    .select('number')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', startId);
  return query.where('d.number', '<=', start);
}

/** Services of deployments, by stage. */
export const listHistoryServices = (
  db: Database,
  scope: Scope,
  deploymentIds: string[],
  serviceId?: string | string[],
): Promise<HistoryService[]> => {
  const query = db
    .selectFrom('deployment_service')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', sql<string>`any(${deploymentIds})`)
    .orderBy('stage_position')
    .orderBy('name');
  return (serviceId ? query.where('service_id', '=', sql<string>`any(${[serviceId].flat()})`) : query).execute();
};

/** Lists deployments that have not ended, in their order. */
export const listQueue = (db: Database, scope: Scope, of: HistoryOf): Promise<HistoryDeployment[]> =>
  selectDeployments(db, scope, of).where('d.status', '<>', 'ENDED').orderBy('d.number').execute();

/** Finds the deployment that an execution id or a deployment's id names, in an environment. */
export async function findExecution(
  db: Database,
  scope: Scope,
  environmentId: string,
  execution?: string,
): Promise<{ id: string; number: number } | undefined> {
  const query = db
    .selectFrom('deployment')
    .select(['id', 'number'])
    .where('organization_id', '=', scope.organizationId)
    .where('environment_id', '=', environmentId);
  if (execution === undefined)
    return query.where('status', '<>', 'WAITING').orderBy('number', 'desc').limit(1).executeTakeFirst();
  const number = execution.startsWith(`${environmentId}-`)
    ? Number(execution.slice(environmentId.length + 1))
    : Number.NaN;
  return Number.isSafeInteger(number) ? query.where('number', '=', number).executeTakeFirst() : undefined;
}
