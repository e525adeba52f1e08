import type { RawBuilder } from 'kysely';
import { LATENCY_BOUNDS_MS } from '#kernel/latency-classes.ts';
import { visibleEnvironments } from '#platform/access/visibility.ts';
import type { Principal } from '#platform/access/principal.ts';
import { countChanged, inBatches } from '#platform/database/batches.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { RequestCounts } from '#runtimes/router.ts';
import type { Sample } from '#services/metrics/sample.ts';

/** Lengths of the intervals that measurements are added to, and how long each is kept, in seconds. */
export const RESOLUTIONS = [
  { seconds: 60, keptSeconds: 3 * 3600 },
  { seconds: 600, keptSeconds: 3 * 86_400 },
  { seconds: 3600, keptSeconds: 30 * 86_400 },
];

/** Seconds after which a measurement is not the present any more. */
const PRESENT_SECONDS = 180;

/** Rows that one statement removes at most. */
const BATCH = 5_000;

/** Service whose instances are measured. */
export interface Measured {
  id: string;
  cluster_id: string;
  handle: unknown;
}

/** Lists the services of clusters that are deployed and should run. */
export const listMeasured = (db: Database, clusterIds: string[]): Promise<Measured[]> =>
  db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .select(['service.id', 'service.handle', 'environment.cluster_id'])
    .where('environment.cluster_id', '=', sql<string>`any(${clusterIds}::uuid[])`)
    .where('service.wanted', '=', 'running')
    .where('service.handle', 'is not', null)
    .where('service.deleting', '=', false)
    .orderBy('service.id')
    .execute();

/** Adds measurements to the intervals that they fall into. What is locked, such as a service that is being deleted, is left out. */
export async function addSamples(db: Database, samples: Sample[]): Promise<void> {
  const ids = samples.map(({ serviceId }) => serviceId);
  const rows = samples.map(({ serviceId, instances, restarts, use }) => ({
    service_id: serviceId,
    instances,
    restarts,
    samples: use === null ? 0 : 1,
    cpu_milli: use?.cpuMilli ?? 0,
    cpu_milli_limit: use?.cpuLimitMilli ?? 0,
    memory_bytes: use?.memoryBytes ?? 0,
    memory_bytes_limit: use?.memoryLimitBytes ?? 0,
  }));
  await sql`
    with present as (
      select id, organization_id from service where id = any(${ids}::uuid[]) order by id for key share skip locked
    )
    insert into service_metric as m (organization_id, service_id, resolution, at, instances, restarts, samples,
      cpu_milli_sum, cpu_milli_max, cpu_milli_limit, memory_bytes_sum, memory_bytes_max, memory_bytes_limit)
    select p.organization_id, p.id, r.seconds, date_bin(make_interval(secs => r.seconds), now(), timestamptz 'epoch'),
      s.instances, s.restarts, s.samples, s.cpu_milli, s.cpu_milli, s.cpu_milli_limit, s.memory_bytes, s.memory_bytes, s.memory_bytes_limit
    from jsonb_to_recordset(${json(rows)}::jsonb) as s (service_id uuid, instances int, restarts int, samples int,
        cpu_milli int, cpu_milli_limit int, memory_bytes bigint, memory_bytes_limit bigint)
      join present p on p.id = s.service_id
      cross join unnest(${RESOLUTIONS.map(({ seconds }) => seconds)}::int[]) as r (seconds)
    order by p.id, r.seconds
    on conflict (service_id, resolution, at) do update set
      instances = excluded.instances,
      restarts = excluded.restarts,
      samples = m.samples + excluded.samples,
      cpu_milli_sum = m.cpu_milli_sum + excluded.cpu_milli_sum,
      cpu_milli_max = greatest(m.cpu_milli_max, excluded.cpu_milli_max),
      cpu_milli_limit = case when excluded.samples > 0 then excluded.cpu_milli_limit else m.cpu_milli_limit end,
      memory_bytes_sum = m.memory_bytes_sum + excluded.memory_bytes_sum,
      memory_bytes_max = greatest(m.memory_bytes_max, excluded.memory_bytes_max),
      memory_bytes_limit = case when excluded.samples > 0 then excluded.memory_bytes_limit else m.memory_bytes_limit end`.execute(
    db,
  );
}

/** Adds requests to the intervals that they fall into, as `addSamples` does. */
export async function addRequests(db: Database, { seconds, services }: RequestCounts): Promise<void> {
  const rows = services.map(({ serviceId, ...counts }) => ({ service_id: serviceId, ...counts }));
  const ids = services.map(({ serviceId }) => serviceId);
  await sql`
    with present as (
      select id, organization_id from service where id = any(${ids}::uuid[]) order by id for key share skip locked
    )
    insert into service_requests as m (organization_id, service_id, resolution, at, seconds, statuses, latencies)
    select p.organization_id, p.id, r.seconds, date_bin(make_interval(secs => r.seconds), now(), timestamptz 'epoch'),
      ${seconds}::float8, s.statuses, s.latencies
    from jsonb_to_recordset(${json(rows)}::jsonb) as s (service_id uuid, statuses bigint[], latencies bigint[])
      join present p on p.id = s.service_id
      cross join unnest(${RESOLUTIONS.map((one) => one.seconds)}::int[]) as r (seconds)
    order by p.id, r.seconds
    on conflict (service_id, resolution, at) do update set
      seconds = m.seconds + excluded.seconds,
      statuses = ${sumOf('statuses')},
      latencies = ${sumOf('latencies')}`.execute(db);
}

/** Returns the last look at the requests that the gateway of a cluster has counted; null before the first one. */
export const findLook = async (db: Database, clusterId: string): Promise<string | null> =>
  (await db.selectFrom('request_look').select('look').where('cluster_id', '=', clusterId).executeTakeFirst())?.look ??
  null;

/** Replaces the last look at a gateway. Returns false if another process has looked since, or the cluster has no environment. */
export async function replaceLook(
  db: Database,
  clusterId: string,
  last: string | null,
  look: string,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    insert into request_look as l (cluster_id, organization_id, look)
    select cluster_id, organization_id, ${look} from environment where cluster_id = ${clusterId} limit 1
    on conflict (cluster_id) do update set look = excluded.look where l.look = ${last}`.execute(db);
  return numAffectedRows === 1n;
}

/** Sum of a list of numbers that is stored and one that is added to it. */
const sumOf = (column: string) =>
  sql`array(select a + b from unnest(m.${sql.ref(column)}, excluded.${sql.ref(column)}) with ordinality as t (a, b, n) order by n)`;

/** Removes intervals that are kept no longer. */
export async function removeOldMetrics(db: Database, signal: AbortSignal): Promise<void> {
  for (const table of Object.keys(COLUMNS).map((name) => sql.table(name)))
    for (const { seconds, keptSeconds } of RESOLUTIONS)
      await inBatches(BATCH, signal, () =>
        countChanged(
          db,
          sql`delete from ${table} where ctid = any(array(select ctid from ${table}
            where resolution = ${seconds} and at < now() - make_interval(secs => ${keptSeconds}) limit ${BATCH}))`,
        ),
      );
}

/** Service that has metrics, with its place. */
export interface MetricService {
  service_id: string;
  service: string;
  kind: string;
  environment_id: string;
  environment: string;
  project_id: string;
  project: string;
  cluster_id: string;
}

const metricServices = (db: Database) =>
  db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .select(['service.id as service_id', 'service.name as service', 'service.kind', 'environment.cluster_id'])
    .select(['environment.id as environment_id', 'environment.name as environment'])
    .select(['project.id as project_id', 'project.name as project']);

/** Lists the services on a cluster that the caller may read. */
export const listMetricServices = (
  db: Database,
  principal: Principal,
  { organizationId }: Scope,
  clusterId: string,
): Promise<MetricService[]> =>
  metricServices(db)
    .where('service.organization_id', '=', organizationId)
    .where('environment.cluster_id', '=', clusterId)
    .where(visibleEnvironments(principal, organizationId, 'service.read'))
    .orderBy('service.id')
    .execute();

/** Service and beginning of an interval. */
interface Place {
  service_id: string;
  at: Date;
}

/** Use of instances in one interval. CPU and memory are null where they could not be measured. */
export interface Interval extends Place {
  instances: number;
  restarts: number;
  /** Milli-CPU: the mean, the highest measurement, and the limit. */
  cpu_milli: number | null;
  cpu_milli_max: number | null;
  cpu_milli_limit: number | null;
  memory_bytes: number | null;
  memory_bytes_max: number | null;
  memory_bytes_limit: number | null;
}

/** Shares of requests whose latencies are answered. */
export const QUANTILES = [0.5, 0.95, 0.99] as const;

/** Requests of one interval. */
export interface RequestInterval extends Place {
  /** Answers per second, by the hundreds of their status, 1xx to 5xx; null where they were counted for no time. */
  rates: (number | null)[];
  /** Milliseconds within which the `QUANTILES` of the requests were answered; null without requests. */
  quantiles: (number | null)[];
}

/** Intervals by the table that has them. */
export interface Intervals {
  service_metric: Interval;
  service_requests: RequestInterval;
}

const ifMeasured = (column: string) => sql`case when m.samples > 0 then ${sql.ref(column)} end`;

/** Columns of an interval of the table `m`. */
const COLUMNS: Record<keyof Intervals, RawBuilder<unknown>> = {
  service_metric: sql`m.service_id, m.at, m.instances, m.restarts,
  m.cpu_milli_sum::float8 / nullif(m.samples, 0) as cpu_milli, ${ifMeasured('m.cpu_milli_max')} as cpu_milli_max,
  ${ifMeasured('m.cpu_milli_limit')} as cpu_milli_limit,
  m.memory_bytes_sum::float8 / nullif(m.samples, 0) as memory_bytes, ${ifMeasured('m.memory_bytes_max')}::float8 as memory_bytes_max,
  ${ifMeasured('m.memory_bytes_limit')}::float8 as memory_bytes_limit`,
  service_requests: sql`m.service_id, m.at,
  array(select count / nullif(m.seconds, 0) from unnest(m.statuses) with ordinality as t (count, n) order by n) as rates,
  array(select latency_quantile(m.latencies, ${LATENCY_BOUNDS_MS}::int[], share)
    from unnest(${QUANTILES}::float8[]) with ordinality as t (share, n) order by n) as quantiles`,
};

/** Lists the intervals of services that begin within a time, the earliest first. */
export async function listIntervals<Source extends keyof Intervals>(
  db: Database,
  { organizationId }: Scope,
  source: Source,
  { ids, resolution, from, to }: { ids: string[]; resolution: number; from: Date; to: Date },
): Promise<Intervals[Source][]> {
  const { rows } = await sql<Intervals[Source]>`select ${COLUMNS[source]} from ${sql.table(source)} m
    where m.organization_id = ${organizationId} and m.service_id = any(${ids}::uuid[]) and m.resolution = ${resolution}
      and m.at between ${from} and ${to} order by m.service_id, m.at`.execute(db);
  return rows;
}

/** Lists the present values of all services of the installation, with their places. */
export async function listPresent<Source extends keyof Intervals>(
  db: Database,
  source: Source,
): Promise<(MetricService & Intervals[Source])[]> {
  const { rows } = await sql<MetricService & Intervals[Source]>`
    select place.*, latest.* from (${metricServices(db)}) place
      cross join lateral (select ${COLUMNS[source]} from ${sql.table(source)} m
        where m.service_id = place.service_id and m.resolution = ${RESOLUTIONS[0]!.seconds}
          and m.at > now() - make_interval(secs => ${PRESENT_SECONDS}) order by m.at desc limit 1) latest
    order by place.service_id`.execute(db);
  return rows;
}
