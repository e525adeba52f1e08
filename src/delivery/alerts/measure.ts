import type { RawBuilder } from 'kysely';
import { sql, type Database } from '#platform/database/index.ts';
import type { Finding } from '#delivery/alerts/finding.ts';
import type { Measure } from '#resources/alert-rule/index.ts';
import type { DueRule } from '#delivery/alerts/queries.ts';

/**
 * Statements on the service `s` that return `holds`, `since`, `detail` and `part` in one row. Without a row, or with null in `holds`, nothing
 * is known. `i` is what the rule has found at the service before, if anything.
 */
const CONDITIONS: Record<Measure, (threshold: number) => RawBuilder<unknown>> = {
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
};

/** Lists the services of a target that fulfil a rule's condition. Those that it has found before stay while nothing is known of them. */
export async function measure(db: Database, rule: DueRule): Promise<Finding[]> {
  const target = { CLUSTER: sql`e.cluster_id`, ENVIRONMENT: sql`e.id` }[rule.target_type] ?? sql`s.id`;
  const { rows } = await sql<Finding>`
    select s.id as subject_id, p.name || ' / ' || e.name || ' / ' || s.name as name, f.holds, f.detail, f.part, f.since,
      e.project_id, e.id as environment_id, e.mode, e.cluster_id as on_cluster_id
    from service s join environment e on e.id = s.environment_id join project p on p.id = e.project_id
      left join alert_incident i on i.rule_id = ${rule.id} and i.subject_id = s.id
      left join lateral (${CONDITIONS[rule.condition.promql as Measure](rule.condition.threshold ?? 0)}) f on true
    where s.organization_id = ${rule.organization_id} and ${target} = ${rule.target_id} and not s.deleting
      and (f.holds or f.holds is null and i.subject_id is not null)
    order by 2, 1`.execute(db);
  return rows;
}
