import type { Insertable, Updateable } from 'kysely';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';
import { kindOf } from '#resources/alert-rule/measures.ts';
import { jobTypeOf, type ServiceLight } from '#resources/organization/index.ts';
import { takesSeverity } from '#resources/alert-receiver/index.ts';

/**
 * Columns by which the rights to a rule's target are decided. Of a deleted target only the project is known; `on_cluster_id` is null then.
 */
export interface TargetColumns {
  project_id: string | null;
  environment_id: string | null;
  mode: string | null;
  on_cluster_id: string | null;
}

/** Receivers of the rule `r` that take messages of its severity. */
const WANTED = sql`alert_rule_receiver a join alert_receiver v on v.id = a.receiver_id
  where a.rule_id = r.id and ${takesSeverity(sql.ref('v.severity'), sql.ref('r.severity'))}`;

/** Service `s` that is the target of a rule, in its environment `e` and project `p`; null for another target. */
const SERVICE = sql<ServiceLight | null>`case when s.id is not null then json_strip_nulls(json_build_object(
  'id', s.id, 'name', s.name, 'description', coalesce(s.description, ''), 'icon_uri', s.icon_uri, 'service_type', s.kind,
  'project_id', p.id, 'project_name', p.name, 'environment_id', e.id, 'environment_name', e.name, 'cluster_id', e.cluster_id,
  'job_type', ${jobTypeOf('s')})) end`;

/** Rules with the location of their target, receivers and the state of their alerts. */
const rules = (db: Database) =>
  db
    .selectFrom('alert_rule as r')
    .leftJoin('service as s', (join) =>
      join.onRef('s.id', '=', 'r.target_id').onRef('s.organization_id', '=', 'r.organization_id'),
    )
    .leftJoin('environment as e', (join) =>
      join
        .on('e.id', '=', sql<string>`coalesce(s.environment_id, r.target_id)`)
        .onRef('e.organization_id', '=', 'r.organization_id'),
    )
    .leftJoin('cluster as c', (join) =>
      join
        .on('c.id', '=', sql<string>`coalesce(e.cluster_id, r.target_id)`)
        .onRef('c.organization_id', '=', 'r.organization_id'),
    )
    .leftJoin('project as p', 'p.id', 'e.project_id')
    .selectAll('r')
    .select(['c.runtime', SERVICE.as('service')])
    .select(['e.id as environment_id', 'e.mode', 'c.id as on_cluster_id'])
    .select(sql<string | null>`coalesce(e.project_id, r.target_project_id)`.as('project_id'))
    .select([
      sql<
        string[]
      >`array(select a.receiver_id from alert_rule_receiver a where a.rule_id = r.id order by a.receiver_id)`.as(
        'receiver_ids',
      ),
      sql<Date | null>`(select min(i.since) from alert_incident i where i.rule_id = r.id)`.as('starts_at'),
      sql<boolean>`exists (select from alert_incident i where i.rule_id = r.id and i.fired_at is not null)`.as('fires'),
      sql<boolean>`(exists (select from alert_message m where m.rule_id = r.id and m.status <> 'ENDED')
        or exists (select from ${WANTED} and not a.is_current))`.as('sends'),
      sql<boolean>`exists (select from ${WANTED})`.as('has_receiver'),
      sql<string | null>`(select v.name || ': ' || a.error from alert_rule_receiver a
        join alert_receiver v on v.id = a.receiver_id where a.rule_id = r.id and a.error is not null order by v.name, v.id limit 1)`.as(
        'delivery_error',
      ),
    ]);

/** Lists the rules of an organization in creation order. */
export const listRules = (db: Database, scope: Scope) =>
  rules(db).where('r.organization_id', '=', scope.organizationId).orderBy('r.created_at').orderBy('r.id').execute();

export type RuleRow = Awaited<ReturnType<typeof listRules>>[number];

export const findRuleById = (db: Database, organizationIds: string[], id: string) =>
  rules(db)
    .where('r.organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('r.id', '=', id)
    .executeTakeFirst();

/** Locks a rule until the commit: its evaluation waits. */
export const lockRule = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('alert_rule')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

/** Location of a target, with the runtime of its cluster. */
export interface FoundTarget extends TargetColumns {
  runtime: string;
}

/** Finds a cluster, an environment or a service of a kind with its location. */
export async function findTarget(
  db: Database,
  scope: Scope,
  type: string,
  id: string,
): Promise<FoundTarget | undefined> {
  const { organizationId } = scope;
  const none = sql`null::uuid as project_id, null::uuid as environment_id, null as mode`;
  const of = sql`e.project_id, e.id as environment_id, e.mode, c.id as on_cluster_id, c.runtime`;
  const found =
    type === 'CLUSTER'
      ? sql<FoundTarget>`select ${none}, c.id as on_cluster_id, c.runtime from cluster c where c.organization_id = ${organizationId} and c.id = ${id}`
      : type === 'ENVIRONMENT'
        ? sql<FoundTarget>`select ${of} from environment e join cluster c on c.id = e.cluster_id
            where e.organization_id = ${organizationId} and e.id = ${id}`
        : sql<FoundTarget>`select ${of} from service s join environment e on e.id = s.environment_id join cluster c on c.id = e.cluster_id
            where s.organization_id = ${organizationId} and s.id = ${id} and s.kind = ${kindOf(type)}`;
  return (await found.execute(db)).rows[0];
}

export const countRules = async (db: Database, scope: Scope): Promise<number> =>
  (
    await db
      .selectFrom('alert_rule')
      .select(sql<number>`count(*)`.as('rules'))
      .where('organization_id', '=', scope.organizationId)
      .executeTakeFirstOrThrow()
  ).rules;

/** Returns the ids that receivers of the organization have, locked so that none is deleted before the commit. */
export const lockReceivers = async (db: Database, scope: Scope, ids: string[]): Promise<string[]> =>
  (
    await db
      .selectFrom('alert_receiver')
      .select('id')
      .where('organization_id', '=', scope.organizationId)
      .where('id', '=', sql<string>`any(${ids}::uuid[])`)
      .orderBy('id')
      .forKeyShare()
      .execute()
  ).map(({ id }) => id);

export const insertRule = (db: Database, row: Insertable<DB['alert_rule']>) =>
  db.insertInto('alert_rule').values(row).execute();

export const updateRule = (db: Database, scope: Scope, id: string, change: Updateable<DB['alert_rule']>) =>
  db
    .updateTable('alert_rule')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteRuleRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('alert_rule').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/**
 * Replaces the receivers of a rule. Those that stay keep what they know; to those that go nothing is sent any more, and new ones are told by
 * the next evaluation what fires.
 */
export async function setReceivers(db: Database, scope: Scope, ruleId: string, ids: string[]): Promise<void> {
  const isGone = sql`organization_id = ${scope.organizationId} and rule_id = ${ruleId} and receiver_id <> all(${ids}::uuid[])`;
  await sql`delete from alert_message where ${isGone} and status <> 'ENDED'`.execute(db);
  await sql`delete from alert_rule_receiver where ${isGone}`.execute(db);
  await sql`insert into alert_rule_receiver (organization_id, rule_id, receiver_id)
    select ${scope.organizationId}, ${ruleId}, id from unnest(${ids}::uuid[]) as id on conflict do nothing`.execute(db);
}

/** Forgets what a rule has found and what it has not told yet; until its next evaluation nothing is known. */
export async function forgetAlerts(db: Database, scope: Scope, ruleId: string): Promise<void> {
  await sql`update alert_rule set evaluated_at = null where organization_id = ${scope.organizationId} and id = ${ruleId}`.execute(
    db,
  );
  await sql`delete from alert_incident where organization_id = ${scope.organizationId} and rule_id = ${ruleId}`.execute(
    db,
  );
  await sql`delete from alert_message where organization_id = ${scope.organizationId} and rule_id = ${ruleId}
    and status <> 'ENDED'`.execute(db);
}
