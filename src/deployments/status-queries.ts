import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { isLost } from '#platform/installation/nodes.ts';
import type { Cause } from '#deployments/model/errors.ts';
import type { Observed } from '#deployments/model/observed.ts';

/** Filter for the services whose statuses are listed. */
export interface StatusFilter {
  environmentIds?: string[];
  serviceIds?: string[];
  kind?: string;
}

/** Seconds without an answer of its cluster after which a service shows UNAVAILABLE (docs/contributing/engine.md, *What is stored, what is derived*). */
const UNREACHABLE_SECONDS = 180;

/** Machine whose workers carry out a waiting request. Times are RFC 3339. */
interface MachineOfRequest {
  drainedAt: string | null;
  /** Last sign of life of a lost machine. */
  lostSince: string | null;
}

/** Expression for the `MachineOfRequest` of cluster `c` on node `n`. Any machine serves a cluster without a node: it is drained if all present ones are. */
const machineOfCluster = sql`case when c.node_id is not null
  then json_build_object('drainedAt', n.drained_at, 'lostSince', case when ${isLost} then n.seen_at end)
  else (select json_build_object('drainedAt', max(n.drained_at), 'lostSince', null) from node n
    where not ${isLost} having bool_and(n.drained_at is not null)) end`;

export interface ServiceStatusRow {
  id: string;
  environment_id: string;
  kind: string;
  name: string;
  wanted: string;
  deployed: boolean;
  current: boolean;
  /** True if the service should be running, and its cluster has not answered for UNREACHABLE_SECONDS. */
  unreachable: boolean;
  action: string | null;
  sub_action: string | null;
  state: string | null;
  deployment_id: string | null;
  number: number | null;
  request_status: string | null;
  error: string | null;
  error_code: string | null;
  error_step: string | null;
  error_cause: Cause | null;
  last_deployment_date: Date | null;
  started_at: Date | null;
  ended_at: Date | null;
  requests: number;
  last_number: number | null;
  steps: { name: string; status: string; started_at: string; ended_at: string }[] | null;
  warnings: { code: string; message: string; since: string }[] | null;
  /** Null where no request waits, or any machine that is there may begin it. */
  machine: MachineOfRequest | null;
  /** State of a service that an external system runs; null for deployed services. */
  observed: Observed | null;
}

/**
 * Lists the states of services in one statement: of the running deployment, else of the first waiting one, else of the last one that ended
 * (docs/contributing/engine.md, *What is stored, what is derived*). The lateral look-ups go by index, so that a long history and a large
 * environment cost nothing: `offset 0` keeps the planner, where it has no statistics yet, from reading all deployments that ever ended, or
 * all services of one for each of them. For the same reason the values that the services of an environment share are looked up once, and
 * each combination of filters is a statement of its own, whose plan may go by their indexes.
 */
export async function listServiceStatusRows(
  db: Database,
  scope: Scope,
  filter: StatusFilter,
): Promise<ServiceStatusRow[]> {
  const { rows } = await sql<ServiceStatusRow>`
    with place as materialized (
      select e.id, e.version, e.deployment_number, p.version as project_version, c.reached_at, ${machineOfCluster} as machine
      from environment e join project p on p.id = e.project_id join cluster c on c.id = e.cluster_id left join node n on n.id = c.node_id
      where e.organization_id = ${scope.organizationId} and ${ofPlaces(scope, filter)}
    )
    select s.id, s.environment_id, s.kind, s.name, s.wanted, r.id is not null as deployed,
      coalesce(r.service_version = s.version and r.environment_version = e.version and r.project_version = e.project_version
        and (s.newest_commit is null or s.newest_commit = r.resolution -> 'commit' ->> 'id'), false) as current,
      (s.wanted <> 'absent' or s.observed is not null)
        and coalesce(coalesce(argo.reached_at, e.reached_at) < now() - make_interval(secs => ${sql.lit(UNREACHABLE_SECONDS)}), false) as unreachable,
      s.observed,
      shown.action, shown.sub_action, shown.state, shown.deployment_id, shown.number, shown.request_status, shown.started_at, shown.ended_at,
      shown.error, shown.error_code, shown.error_step, shown.error_cause,
      ended.ended_at as last_deployment_date, coalesce(active.requests, 0)::int as requests,
      nullif(e.deployment_number, 0) as last_number,
      (select json_agg(json_build_object('name', t.name, 'status', t.status, 'started_at', t.started_at, 'ended_at', t.ended_at) order by t.position)
        from deployment_step t where t.organization_id = s.organization_id and t.deployment_id = shown.deployment_id and t.service_id = s.id and t.status <> 'STARTED') as steps,
      (select json_agg(json_build_object('code', w.code, 'message', w.message, 'since', w.created_at) order by w.created_at, w.subject)
        from service_warning w where w.organization_id = s.organization_id and w.service_id = s.id) as warnings,
      case when shown.request_status = 'WAITING' then e.machine end as machine
    from service s
    join place e on e.id = s.environment_id
    left join argo_cd argo on argo.id = s.argo_cd_id and argo.organization_id = s.organization_id
    left join release r on r.id = s.release_id
    left join lateral (
      select count(*) as requests, (array_agg(d.id order by d.status = 'WAITING', d.number))[1] as id
      from deployment d join deployment_service ds on ds.deployment_id = d.id
      where d.environment_id = s.environment_id and d.status <> 'ENDED' and ds.service_id = s.id
    ) active on true
    left join lateral (
      select d.id, coalesce(ds.ended_at, d.ended_at) as ended_at from deployment_service ds cross join lateral (
        select id, ended_at from deployment
        where id = ds.deployment_id and status = 'ENDED' and not (action = 'RUN' and outcome = 'SUCCESS') offset 0) d
      where ds.service_id = s.id order by ds.number desc limit 1
    ) ended on true
    left join lateral (
      select ds.action, ds.sub_action, ds.state, ds.deployment_id, ds.number, d.status as request_status, ds.started_at, ds.ended_at,
        ds.error, ds.error_code, ds.error_step, ds.error_cause
      from deployment_service ds join deployment d on d.id = ds.deployment_id
      where ds.deployment_id = coalesce(active.id, ended.id) and ds.service_id = s.id offset 0
    ) shown on true
    where s.organization_id = ${scope.organizationId} and ${ofServices(filter)}
    order by s.created_at, s.id`.execute(db);
  return rows;
}

/** Conditions on service `s`. */
function ofServices({ environmentIds, serviceIds, kind }: StatusFilter) {
  const conditions = [
    ...(environmentIds ? [sql`s.environment_id = any(${environmentIds}::uuid[])`] : []),
    ...(serviceIds ? [sql`s.id = any(${serviceIds}::uuid[])`] : []),
    ...(kind ? [sql`s.kind = ${kind}`] : []),
  ];
  return conditions.length > 0 ? sql.join(conditions, sql` and `) : sql`true`;
}

/** Conditions on environment `e` that hold for those of the services. */
function ofPlaces({ organizationId }: Scope, { environmentIds, serviceIds }: StatusFilter) {
  if (environmentIds) return sql`e.id = any(${environmentIds}::uuid[])`;
  if (serviceIds)
    return sql`e.id in (select environment_id from service where organization_id = ${organizationId} and id = any(${serviceIds}::uuid[]))`;
  return sql`true`;
}

export interface EnvironmentStatusRow {
  id: string;
  action: string | null;
  status: string | null;
  outcome: string | null;
  cancel_requested_at: Date | null;
  deployment_id: string | null;
  number: number | null;
  origin: string | null;
  requested_by_name: string | null;
  started_at: Date | null;
  ended_at: Date | null;
  last_ended_at: Date | null;
  /** Error of the deployment as a whole, or of its first service that failed, with its name. */
  error: string | null;
  error_code: string | null;
  error_step: string | null;
  error_cause: Cause | null;
  error_service: { id: string; name: string } | null;
  /** True if anything was ever requested. */
  requested: boolean;
  requests: number;
  services: number;
  deployed: number;
  current: number;
}

/**
 * Returns the state of environments: of the request under way, else of the last one, deletes of single services aside
 * (docs/contributing/rules.md 11).
 */
export async function listEnvironmentStatusRows(
  db: Database,
  scope: Scope,
  environmentIds: string[],
): Promise<EnvironmentStatusRow[]> {
  const { rows } = await sql<EnvironmentStatusRow>`
    select e.id, shown.action, shown.status, shown.outcome, shown.cancel_requested_at, shown.id as deployment_id, shown.number, shown.origin,
      shown.requested_by_name, shown.started_at, shown.ended_at, ended.ended_at as last_ended_at,
      e.deployment_number > 0 as requested,
      coalesce(shown.error, failed.error) as error, case when shown.error is null then failed.error_code end as error_code,
      case when shown.error is null then failed.error_step end as error_step,
      case when shown.error is null then failed.error_cause end as error_cause,
      case when shown.error is null and failed.service_id is not null then json_build_object('id', failed.service_id, 'name', failed.name) end as error_service,
      coalesce(active.requests, 0)::int as requests, counted.services::int, counted.deployed::int, counted.current::int
    from environment e
    left join lateral (
      select count(*) as requests, (array_agg(d.id order by d.status = 'WAITING', d.number) filter (where d.whole_environment or d.action <> 'DELETE'))[1] as id
      from deployment d where d.environment_id = e.id and d.status <> 'ENDED'
    ) active on true
    left join lateral (
      select d.id, d.ended_at from deployment d
      where d.environment_id = e.id and d.status = 'ENDED' and (d.whole_environment or d.action <> 'DELETE')
        and not (d.action = 'RUN' and d.outcome = 'SUCCESS') order by d.number desc limit 1
    ) ended on true
    left join deployment shown on shown.id = coalesce(active.id, ended.id)
    left join lateral (
      select ds.service_id, ds.name, ds.error, ds.error_code, ds.error_step, ds.error_cause from deployment_service ds
      where ds.deployment_id = shown.id and ds.error is not null order by ds.ended_at, ds.name limit 1
    ) failed on true
    left join lateral (
      select count(*) as services, count(r.id) as deployed,
        count(*) filter (where r.service_version = s.version and r.environment_version = e.version and r.project_version = p.version
          and (s.newest_commit is null or s.newest_commit = r.resolution -> 'commit' ->> 'id')) as current
      from service s join project p on p.id = e.project_id left join release r on r.id = s.release_id
      -- Deploying the environment changes nothing of what something else runs.
      where s.environment_id = e.id and s.observed is null
    ) counted on true
    where e.organization_id = ${scope.organizationId} and e.id = any(${environmentIds}::uuid[])
    order by e.created_at, e.id`.execute(db);
  return rows;
}
