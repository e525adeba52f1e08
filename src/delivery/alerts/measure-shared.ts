import type { RawBuilder } from 'kysely';
import type { Action } from '#platform/access/actions.ts';
import type { Context } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { prepareMeasure, type SharedMeasure } from '#resources/alert-rule/index.ts';
import type { Finding } from '#delivery/alerts/finding.ts';
import { COMPARISONS } from '#delivery/alerts/measure.ts';
import type { DueRule } from '#delivery/alerts/queries.ts';

/** Rule with its threshold, and the comparison with that. */
interface Asked {
  rule: DueRule;
  threshold: number;
  crosses: RawBuilder<unknown>;
}

interface SharedCondition {
  /** Action that the maker of the rule must be allowed to do, to be told of what is found. */
  reads(rule: DueRule): Action;
  /**
   * Statement that returns the columns of findings but `reads`. With null in `holds` nothing is known. A thing without a row does not fulfil
   * the condition.
   */
  statement(asked: Asked): RawBuilder<unknown>;
}

/** Columns of the location of what belongs to the organization as a whole. */
const OF_ORGANIZATION = sql`null::uuid as project_id, null::uuid as environment_id, null as mode, null::uuid as on_cluster_id`;
/** Columns of the location of the cluster `c`. */
const OF_CLUSTER = sql`null::uuid as project_id, null::uuid as environment_id, null as mode, c.id as on_cluster_id`;
/** Columns of the location of the environment `e`. */
const OF_ENVIRONMENT = sql`e.project_id, e.id as environment_id, e.mode, e.cluster_id as on_cluster_id`;

/** Condition: the cluster `c` is the target of a rule. */
const isTarget = ({ organization_id, target_id }: DueRule) =>
  sql`c.organization_id = ${organization_id} and c.id = ${target_id}`;

const minuteOf = (time: RawBuilder<unknown>) => sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')`;

/** Columns on an end that is near or past; what has no end never fulfils the condition. */
const endColumns = (end: RawBuilder<unknown>, days: number) => sql`
  coalesce(${end} < clock_timestamp() + make_interval(secs => ${days * 86_400}), false) as holds,
  case when ${end} <= clock_timestamp() then 'expired at ' else 'expires at ' end || ${minuteOf(end)} as detail, null as part,
  ${end} - make_interval(secs => ${days * 86_400}) as since`;

/** Condition on the installation, of which other organizations than the first learn nothing. `last` is read from its copies, the table `k`. */
const sinceCopy = (
  last: RawBuilder<unknown>,
  words: { none: string; last: string },
  seconds: number,
  { organization_id }: DueRule,
) => sql`
  select n.id as subject_id, 'copies of the installation' as name, d.due_at < clock_timestamp() as holds,
    case when d.last is null then ${words.none}::text else ${words.last}::text || ${minuteOf(sql`d.last`)} end as detail, null as part,
    d.due_at as since, ${OF_ORGANIZATION}
  from installation n cross join lateral (
    select k.last, coalesce(k.last, n.created_at) + make_interval(secs => ${seconds}) as due_at
    from (select ${last} as last from installation_copy k) k) d
  where n.first_organization_id = ${organization_id}`;

const CONDITIONS: Record<SharedMeasure, SharedCondition> = {
  api_token_days_left: {
    reads: () => 'apiToken.read',
    statement: ({ rule, threshold }) => sql`
      select t.id as subject_id, t.name, ${endColumns(sql`t.expires_at`, threshold)}, ${OF_ORGANIZATION}
      from api_token t where t.organization_id = ${rule.organization_id}`,
  },
  git_token_days_left: {
    reads: () => 'gitToken.read',
    statement: ({ rule, threshold }) => sql`
      select t.id as subject_id, t.name, ${endColumns(sql`t.expired_at`, threshold)}, ${OF_ORGANIZATION}
      from git_token t where t.organization_id = ${rule.organization_id}`,
  },
  cluster_credentials_days_left: {
    reads: () => 'cluster.read',
    statement: ({ rule, threshold }) => sql`
      select c.id as subject_id, c.name, ${endColumns(sql`k.ends_at`, threshold)}, ${OF_CLUSTER}
      from cluster c join cluster_secret k on k.cluster_id = c.id and k.name = 'kubeconfig' where ${isTarget(rule)}`,
  },
  // Organizations know machines by their ids. A disk that was found full is waited for while it is not measured, whatever the other one is.
  disk_used_percent: {
    reads: () => 'cluster.read',
    statement: ({ rule, threshold, crosses }) => sql`
      select n.id as subject_id, c.name || ', machine ' || n.id as name,
        case when d.is_over then true when d.is_known and not coalesce(d.is_awaited, false) then false end as holds,
        case d.part when 'ENGINE' then 'the disk of its container engine' else 'the disk of its data directory' end
          || ' is ' || round(d.percent::numeric, 1) || ' % full, ' || d.free_bytes / 1048576 || ' MiB are free' as detail,
        d.part, d.measured_at as since, ${OF_CLUSTER}
      from cluster c join node n on n.id = c.node_id
        left join alert_incident i on i.rule_id = ${rule.id} and i.subject_id = n.id
        left join lateral (
          select bool_or(t.is_fresh and t.percent ${crosses} ${threshold}) as is_over, bool_or(t.is_fresh) as is_known,
            bool_or(not t.is_fresh and t.holds = i.part) as is_awaited,
            (array_agg(t.holds order by t.is_fresh desc, t.percent desc))[1] as part,
            (array_agg(t.percent order by t.is_fresh desc, t.percent desc))[1] as percent,
            (array_agg(t.free_bytes order by t.is_fresh desc, t.percent desc))[1] as free_bytes,
            (array_agg(t.measured_at order by t.is_fresh desc, t.percent desc))[1] as measured_at
          from (select k.holds, k.free_bytes, k.measured_at, k.measured_at > clock_timestamp() - interval '5 minutes' as is_fresh,
              100 * (1 - k.free_bytes::float8 / k.total_bytes) as percent
            from node_disk k where k.node_id = n.id and k.total_bytes > 0) t) d on true
      where ${isTarget(rule)}`,
  },
  deployments_waiting: {
    reads: ({ target_type }) => (target_type === 'CLUSTER' ? 'cluster.read' : 'environment.read'),
    statement: ({ rule, threshold, crosses }) => {
      const isCluster = rule.target_type === 'CLUSTER';
      const waiting = sql`select count(*) as n from deployment d where d.organization_id = ${rule.organization_id}
        and d.status = 'WAITING' and ${isCluster ? sql`d.cluster_id` : sql`d.environment_id`} = ${rule.target_id}`;
      const columns = sql`w.n ${crosses} ${threshold}::float8 as holds,
        case w.n when 1 then '1 deployment waits' else w.n || ' deployments wait' end as detail, null as part, null::timestamptz as since`;
      return isCluster
        ? sql`select c.id as subject_id, c.name, ${columns}, ${OF_CLUSTER} from cluster c cross join (${waiting}) w where ${isTarget(rule)}`
        : sql`select e.id as subject_id, p.name || ' / ' || e.name as name, ${columns}, ${OF_ENVIRONMENT}
            from environment e join project p on p.id = e.project_id cross join (${waiting}) w
            where e.organization_id = ${rule.organization_id} and e.id = ${rule.target_id}`;
    },
  },
  deployment_waiting_seconds: {
    reads: () => 'environment.read',
    statement: ({ rule, threshold }) => sql`
      select e.id as subject_id, p.name || ' / ' || e.name as name, true as holds,
        'deployment ' || (array_agg(d.number order by d.created_at))[1] || ' waits since ' || ${minuteOf(sql`min(d.created_at)`)} as detail,
        null as part, min(d.created_at) + make_interval(secs => ${threshold}) as since, ${OF_ENVIRONMENT}
      from deployment d join environment e on e.id = d.environment_id join project p on p.id = e.project_id
      where d.organization_id = ${rule.organization_id} and d.status = 'WAITING'
        and ${rule.target_type === 'CLUSTER' ? sql`d.cluster_id` : sql`d.environment_id`} = ${rule.target_id}
      group by e.id, p.id having min(d.created_at) < clock_timestamp() - make_interval(secs => ${threshold})`,
  },
  // The findings themselves name machines and settings, which are the operator's.
  queue_stuck: {
    reads: () => 'cluster.read',
    statement: ({ rule }) => sql`
      select c.id as subject_id, c.name, true as holds,
        string_agg(distinct case f.kind when 'CYCLE' then 'requests wait for each other in a circle: cancel one of them'
          else 'requests can begin, but no worker claims them: the operator finds the reason by quarterdeck doctor' end, '; ') as detail,
        null as part, min(f.first_seen_at) as since, ${OF_CLUSTER}
      from queue_finding f join cluster c on c.id = f.cluster_id
      where ${isTarget(rule)} and f.reported_at is not null group by c.id`,
  },
  copy_age_hours: {
    reads: () => 'organization.read',
    statement: ({ rule, threshold }) =>
      sinceCopy(
        sql`max(k.taken_at)`,
        { none: 'no copy was ever sent to a store elsewhere', last: 'the last copy is of ' },
        threshold * 3_600,
        rule,
      ),
  },
  copy_check_age_days: {
    reads: () => 'organization.read',
    statement: ({ rule, threshold }) =>
      sinceCopy(
        sql`max(k.checked_at) filter (where k.check_error is null)`,
        { none: 'none of the copies was found good', last: 'the last copy was found good at ' },
        threshold * 86_400,
        rule,
      ),
  },
};

/** Lists what fulfils a condition on things that services share. Those that the rule has found before stay while nothing is known of them. */
export async function measureShared(
  context: Pick<Context, 'db' | 'vault'>,
  rule: DueRule,
  measure: SharedMeasure,
): Promise<Finding[]> {
  const { threshold = 0, operator = 'NONE' } = rule.condition;
  await prepareMeasure(context, { organizationId: rule.organization_id }, measure, rule.target_id);
  const { reads, statement } = CONDITIONS[measure];
  const asked = { rule, threshold, crosses: COMPARISONS[operator] ?? sql`=` };
  const { rows } = await sql<Omit<Finding, 'reads'>>`
    select f.* from (${statement(asked)}) f left join alert_incident i on i.rule_id = ${rule.id} and i.subject_id = f.subject_id
    where f.holds or f.holds is null and i.subject_id is not null order by f.name, f.subject_id`.execute(context.db);
  return rows.map((row) => ({ ...row, reads: reads(rule) }));
}
