import type { RawBuilder } from 'kysely';
import { LATENCY_BOUNDS_MS } from '#kernel/latency-classes.ts';
import { sql, type Database } from '#platform/database/index.ts';
import type { Finding } from '#delivery/alerts/finding.ts';
import type { Measure, SharedMeasure } from '#resources/alert-rule/index.ts';
import type { DueRule } from '#delivery/alerts/queries.ts';

/** Measure of a service. */
type ServiceMeasure = Exclude<Measure, SharedMeasure>;

/** Time from which on a measurement counts as the present. */
const IS_PRESENT = sql`clock_timestamp() - interval '3 minutes'`;

/**
 * Statements on the service `s` that return `holds`, `since`, `detail` and `part` in one row. Without a row, or with null in `holds`, nothing
 * is known. `i` is what the rule has found at the service before, if anything. `crosses` compares with the threshold.
 */
const CONDITIONS: Record<ServiceMeasure, (threshold: number, crosses: RawBuilder<unknown>) => RawBuilder<unknown>> = {
  // A cancel says nothing of whether the service can be deployed.
  deployment_failed: () => sql`select d.state like '%ERROR' as holds, d.ended_at as since,
      'deployment ' || d.number || ' ended with ' || d.state || coalesce(': ' || (d.error_cause ->> 'summary'), '') as detail, null as part
    from deployment_service d where d.service_id = s.id and d.ended_at is not null and d.state <> 'CANCELED'
    order by d.number desc limit 1`,
  service_not_ready:
    () => sql`select count(*) > 0 as holds, min(w.created_at) as since, min(w.message) as detail, null as part
    from service_warning w where w.service_id = s.id and w.code = 'INSTANCES_NOT_READY'`,
  job_failed: () => sql`select j.state = 'FAILED' as holds, j.ended_at as since,
      coalesce('its run ended with exit code ' || j.exit_code, 'its run failed: ' || coalesce(j.reason, j.error), 'its run failed') as detail, null as part
    from job_execution j where j.service_id = s.id and j.state in ('SUCCEEDED', 'FAILED') order by j.created_at desc, j.id limit 1`,
  backup_failed:
    () => sql`select b.status = 'FAILED' as holds, b.ended_at as since, 'the backup ' || b.name || ' failed' as detail, null as part
    from database_backup b where b.database_id = s.id and b.status in ('READY', 'FAILED') order by b.created_at desc, b.id limit 1`,
  // The end of a certificate is unknown while the proxy writes a new one. Only the domain that was found late is waited for, and only as long
  // as somebody obtains a certificate for it.
  certificate_days_left: (days) => sql`select case when bool_or(t.is_late) then true
        when bool_or(t.ends_at is null and t.domain = i.part and t.is_obtained) then null else false end as holds,
      min(t.ends_at) - make_interval(secs => ${days * 86_400}) as since,
      (array_agg(t.domain order by t.ends_at))[1] || ' until ' || to_char(min(t.ends_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') as detail,
      (array_agg(t.domain order by t.ends_at))[1] as part
    from (select c.domain, c.certificate_expires_at as ends_at, c.certificate_state is distinct from 'UNSUPPORTED' as is_obtained,
        c.certificate_expires_at < clock_timestamp() + make_interval(secs => ${days * 86_400}) as is_late
      from custom_domain c where c.service_id = s.id and c.generate_certificate) t`,
  cpu_percent: (percent, crosses) =>
    shareTaken({
      used: sql`m.cpu_milli_sum`,
      limit: sql`m.cpu_milli_limit`,
      of: sql`'CPU (' || m.cpu_milli_limit || ' mCPU)'`,
      holds: sql`${crosses} ${percent}`,
    }),
  memory_percent: (percent, crosses) =>
    shareTaken({
      used: sql`m.memory_bytes_sum`,
      limit: sql`m.memory_bytes_limit`,
      of: sql`'memory (' || m.memory_bytes_limit / 1048576 || ' MiB)'`,
      holds: sql`${crosses} ${percent}`,
    }),
  // The sum of the present instances falls where they are replaced: that is no restart.
  restarts: (
    count,
    crosses,
  ) => sql`select case when s.wanted = 'running' then sum(t.more) ${crosses} ${count}::float8 else false end as holds,
      max(t.at) filter (where t.more > 0) as since, 'its instances restarted ' || sum(t.more) || ' times within ten minutes' as detail, null as part
    from (select m.at, greatest(0, m.restarts - lag(m.restarts) over (order by m.at)) as more from service_metric m
      where m.service_id = s.id and m.resolution = 60 and m.at > clock_timestamp() - interval '10 minutes') t
    having s.wanted <> 'running' or max(t.at) > ${IS_PRESENT}`,
  // Only databases have this mode.
  backup_age_hours: (
    hours,
  ) => sql`select s.wanted = 'running' and b.due_at < clock_timestamp() as holds, b.due_at as since,
      case when b.last is null then 'no backup was ever made'
        else 'the last backup is of ' || to_char(b.last at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') end as detail, null as part
    from (select max(r.created_at) as last, coalesce(max(r.created_at), s.created_at) + make_interval(secs => ${hours * 3600}) as due_at
      from database_backup r where r.database_id = s.id and r.status = 'READY') b
    where s.spec ->> 'mode' = 'MANAGED'`,
  requests_per_second: (rate, crosses) =>
    ofRequests(
      sql`m.total / nullif(m.seconds, 0)`,
      sql`${crosses} ${rate}`,
      (value) => sql`round(${value}, 2) || ' requests per second'`,
    ),
  error_percent: (percent, crosses) =>
    ofRequests(
      sql`case when m.total = 0 then 0 else 100.0 * m.failed / m.total end`,
      sql`${crosses} ${percent}`,
      (value) => sql`round(${value}, 1) || ' % of ' || m.total || ' answers were 5xx'`,
    ),
  latency_p95_ms: (milliseconds, crosses) =>
    ofRequests(
      sql`case when m.total = 0 then 0 else latency_quantile(m.latencies, ${LATENCY_BOUNDS_MS}::int[], 0.95) end`,
      sql`${crosses} ${milliseconds}`,
      (value) => sql`'95 of 100 requests were answered within ' || round(${value}) || ' ms'`,
    ),
};

interface Share {
  /** Sum of the measurements of a minute. */
  used: RawBuilder<unknown>;
  limit: RawBuilder<unknown>;
  /** Text of what is limited, with the limit. */
  of: RawBuilder<unknown>;
  /** End of the comparison of the percents. */
  holds: RawBuilder<unknown>;
}

/** Statement on what instances take of their limit, by the last minute that was measured. Without a limit nothing is known. */
const shareTaken = ({ used, limit, of, holds }: Share) => sql`
    select case when s.wanted = 'running' then p.percent ${holds} else false end as holds, m.at as since,
      'its instances take ' || round(p.percent) || ' % of their ' || ${of} as detail, null as part
    from (select) as one
      left join lateral (select * from service_metric r where r.service_id = s.id and r.resolution = 60 and r.samples > 0
        and r.at > ${IS_PRESENT} order by r.at desc limit 1) m on true
      cross join lateral (select 100 * ${used}::float8 / m.samples / nullif(${limit}, 0) as percent) p`;

/** Statement on the requests of the last minute that was counted. `holds` ends the comparison of the value, which `detail` tells. */
const ofRequests = (
  value: RawBuilder<unknown>,
  holds: RawBuilder<unknown>,
  detail: (value: RawBuilder<unknown>) => RawBuilder<unknown>,
) => sql`
    select case when s.wanted = 'running' then v.value ${holds} else false end as holds, m.at as since,
      ${detail(sql`v.value::numeric`)} as detail, null as part
    from (select) as one
      left join lateral (select r.at, r.seconds, r.latencies, r.statuses[5] as failed, (select sum(n) from unnest(r.statuses) n) as total
        from service_requests r where r.service_id = s.id and r.resolution = 60 and r.at > ${IS_PRESENT} order by r.at desc limit 1) m on true
      cross join lateral (select ${value} as value) v`;

/** Comparisons of SQL by the operators of conditions. */
export const COMPARISONS: Record<string, RawBuilder<unknown>> = {
  ABOVE: sql`>`,
  ABOVE_OR_EQUAL: sql`>=`,
  BELOW: sql`<`,
  BELOW_OR_EQUAL: sql`<=`,
};

/** Lists the services of a target that fulfil a rule's condition. Those that it has found before stay while nothing is known of them. */
export async function measure(db: Database, rule: DueRule): Promise<Finding[]> {
  const target = { CLUSTER: sql`e.cluster_id`, ENVIRONMENT: sql`e.id` }[rule.target_type] ?? sql`s.id`;
  const { promql, threshold = 0, operator = 'NONE' } = rule.condition;
  const condition = CONDITIONS[promql as ServiceMeasure](threshold, COMPARISONS[operator] ?? sql`=`);
  const { rows } = await sql<Omit<Finding, 'reads'>>`
    select s.id as subject_id, p.name || ' / ' || e.name || ' / ' || s.name as name, f.holds, f.detail, f.part, f.since,
      e.project_id, e.id as environment_id, e.mode, e.cluster_id as on_cluster_id
    from service s join environment e on e.id = s.environment_id join project p on p.id = e.project_id
      left join alert_incident i on i.rule_id = ${rule.id} and i.subject_id = s.id
      left join lateral (${condition}) f on true
    where s.organization_id = ${rule.organization_id} and ${target} = ${rule.target_id} and not s.deleting
      and (f.holds or f.holds is null and i.subject_id is not null)
    order by 2, 1`.execute(db);
  return rows.map((row) => ({ ...row, reads: 'service.read' }));
}
