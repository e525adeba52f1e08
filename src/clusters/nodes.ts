import { sql, type Database } from '#platform/database/index.ts';
import { LIVE_WORKER_SLOTS } from '#platform/database/locks.ts';
import { isLost } from '#platform/installation/nodes.ts';

/** Node as an operator sees it. */
export interface NodeOverview {
  id: string;
  name: string;
  /** Start of the drain; null while the node takes work. */
  drainedAt: Date | null;
  /** Last sign of life. */
  seenAt: Date;
  isLost: boolean;
  /** Number of clusters that live on the node. */
  clusters: number;
  /** Deployments that its workers carry out, and executions, backups, restores and work of its clusters. */
  running: number;
  /** The same that has not begun on its clusters. */
  waiting: number;
}

/** Lists the nodes of the installation. */
export async function listNodes(db: Database): Promise<NodeOverview[]> {
  const { rows } = await sql<NodeOverview>`
    with live as materialized (${LIVE_WORKER_SLOTS}), item as (
      select coalesce(live.node, c.node_id::text) as node, d.status = 'WAITING' as is_waiting
      from deployment d join cluster c on c.id = d.cluster_id left join live on live.worker = d.worker_id where d.status <> 'ENDED'
      union all
      select c.node_id::text, x.state = 'WAITING' from job_execution x
      join environment e on e.id = x.environment_id join cluster c on c.id = e.cluster_id
      where x.state in ('WAITING', 'RUNNING') and x.scheduled_at is not null
      union all
      select c.node_id::text, w.status = 'WAITING' from cluster_work w join cluster c on c.id = w.cluster_id where w.status <> 'ENDED'
      union all
      select c.node_id::text, w.status = 'QUEUED' from (
        select database_id, status from database_backup union all select database_id, status from database_restore) w
      join service s on s.id = w.database_id join environment e on e.id = s.environment_id join cluster c on c.id = e.cluster_id
      where w.status in ('QUEUED', 'RUNNING')
    ), figures as (
      select node, count(*) filter (where not is_waiting)::int as running, count(*) filter (where is_waiting)::int as waiting
      from item group by node
    )
    select n.id, n.name, n.drained_at as "drainedAt", n.seen_at as "seenAt", ${isLost} as "isLost",
      (select count(*)::int from cluster c where c.node_id = n.id) as clusters,
      coalesce(f.running, 0) as running, coalesce(f.waiting, 0) as waiting
    from node n left join figures f on f.node = n.id::text
    order by n.name, n.id`.execute(db);
  return rows;
}
