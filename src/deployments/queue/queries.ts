import { sql, type Database } from '#platform/database/index.ts';
import { LIVE_WORKER_SLOTS } from '#platform/database/locks.ts';
import { isLost } from '#platform/installation/nodes.ts';
import { TAKE_DOWN } from '#deployments/model/states.ts';
import type { QueueItem } from '#deployments/queue/stuck.ts';

/** Seconds by which a lease may be over before its row counts as left behind: other workers claim it within a second. */
const LAPSED_SECONDS = 60;

/**
 * Lists what is queued on clusters, or runs without a lease, with what each waits for. `held` says that something other than the queue
 * itself holds it: a run, a lock, a restore, the limit of an organization, workers without a free slot, a drain.
 */
export async function listQueueItems(
  db: Database,
  limits: { organizationSlots: number; workerSlots: number },
): Promise<QueueItem[]> {
  const { rows } = await sql<QueueItem>`
    with live as materialized (
      select w.node, n.drained_at is not null as is_drained, coalesce(w.slots, ${limits.workerSlots}) <= (
        select count(*) from deployment d where d.worker_id = w.worker and d.status in ('RUNNING', 'RECAP')) as is_full
      from (${LIVE_WORKER_SLOTS}) w left join node n on n.id::text = w.node
    ), running as (
      select organization_id, count(*) as n from deployment where status in ('RUNNING', 'RECAP') group by organization_id
    )
    select d.id, 'deployment ' || d.number || ' of environment ' || e.name as label, c.id as "clusterId", c.name as "clusterName",
      case when c.node_id is not null and ${isLost} then coalesce(n.name, c.node_id::text) end as "absentNode",
      case when d.status <> 'WAITING' then d.lease_until is null or d.lease_until > clock_timestamp() - make_interval(secs => ${LAPSED_SECONDS})
      else c.locked_at is not null
        or (n.drained_at is not null and d.action <> all(${TAKE_DOWN}::text[]))
        -- All workers that may take it, of which there are some, have no free slot or begin nothing new.
        or (select coalesce(bool_and(live.is_full or live.is_drained and d.action <> all(${TAKE_DOWN}::text[])), false) from live
          where c.node_id is null or live.node is null or live.node = c.node_id::text)
        or coalesce(r.n, 0) >= ${limits.organizationSlots}
        or exists (select from deployment o where o.environment_id = d.environment_id and o.status in ('RUNNING', 'RECAP'))
        or exists (select from deployment o where o.environment_id = d.environment_id and o.leftover_until > clock_timestamp())
        or exists (select from cluster_work w where w.cluster_id = c.id and w.status = 'RUNNING')
        or exists (select from database_restore x join service s on s.id = x.database_id
          where s.environment_id = d.environment_id and x.status = 'RUNNING' and x.lease_until > clock_timestamp()) end as held,
      case when d.status = 'WAITING' then array(
        select o.id from deployment o where o.environment_id = d.environment_id and o.status = 'WAITING' and o.number < d.number
        union all select w.id from cluster_work w where w.cluster_id = c.id and w.status = 'WAITING' and w.number < d.queue_number)
      else '{}' end as "waitsFor"
    from deployment d join cluster c on c.id = d.cluster_id join environment e on e.id = d.environment_id
      left join node n on n.id = c.node_id left join running r on r.organization_id = d.organization_id
    where d.status <> 'ENDED'
    union all
    select w.id, w.action || ' of the cluster', c.id, c.name,
      case when c.node_id is not null and ${isLost} then coalesce(n.name, c.node_id::text) end,
      case when w.status = 'RUNNING' then w.lease_until > clock_timestamp() - make_interval(secs => ${LAPSED_SECONDS})
      else c.locked_at is not null
        or (w.action <> 'STOP' and (n.drained_at is not null
          or (c.node_id is null and (select coalesce(bool_and(live.is_drained), false) from live))))
        or exists (select from cluster_work o where o.cluster_id = c.id and o.status = 'RUNNING')
        or exists (select from deployment d where d.cluster_id = c.id and d.status in ('RUNNING', 'RECAP')) end,
      case when w.status = 'WAITING' then array(
        select o.id from cluster_work o where o.cluster_id = c.id and o.status = 'WAITING' and o.number < w.number
        union all select d.id from deployment d where d.cluster_id = c.id and d.status = 'WAITING' and d.queue_number < w.number)
      else '{}' end
    from cluster_work w join cluster c on c.id = w.cluster_id left join node n on n.id = c.node_id
    where w.status <> 'ENDED'`.execute(db);
  return rows;
}

export interface Finding {
  id: string;
  cluster_id: string;
  kind: 'CYCLE' | 'UNCLAIMED';
  message: string;
}

/** Stores the present findings: known ones keep their time, and those that are gone are deleted. */
export async function storeFindings(db: Database, findings: Finding[]): Promise<void> {
  const gone = db.deleteFrom('queue_finding');
  await (findings.length === 0 ? gone : gone.where('id', 'not in', ids(findings))).execute();
  if (findings.length === 0) return;
  await db
    .insertInto('queue_finding')
    .values(findings)
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet((eb) => ({ message: eb.ref('excluded.message'), cluster_id: eb.ref('excluded.cluster_id') })),
    )
    .execute();
}

const ids = (findings: Finding[]) => findings.map(({ id }) => id);

/** Marks findings as reported that have lasted long enough, cycles at once. Returns those that were not reported before. */
export const reportFindings = (db: Database, unclaimedSeconds: number) =>
  db
    .updateTable('queue_finding')
    .set({ reported_at: sql`now()` })
    .where('reported_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('kind', '=', 'CYCLE'),
        eb('first_seen_at', '<=', sql<Date>`now() - make_interval(secs => ${unclaimedSeconds})`),
      ]),
    )
    .returning(['id', 'kind', 'message'])
    .execute();

/** Reported findings, the oldest first. */
export const listReported = (db: Database) =>
  db
    .selectFrom('queue_finding')
    .select(['id', 'kind', 'message', 'first_seen_at'])
    .where('reported_at', 'is not', null)
    .orderBy('first_seen_at')
    .orderBy('id')
    .execute();

/** Seconds for which the oldest waiting deployment has waited; 0 where none waits. */
export async function oldestWaitingSeconds(db: Database): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    select coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as seconds
    from deployment where status = 'WAITING'`.execute(db);
  return rows[0]!.seconds;
}

/** Counts the deployments that have not ended, by status. */
export const countByStatus = (db: Database) =>
  db
    .selectFrom('deployment')
    .select(['status', sql<number>`count(*)`.as('count')])
    .where('status', '<>', 'ENDED')
    .groupBy('status')
    .execute();
