import { forgetLost } from '#platform/installation/loss.ts';
import { countChanged, inBatches } from '#platform/database/batches.ts';
import { sql, type Database } from '#platform/database/index.ts';

/** Rows that one transaction removes at most: a deployment may carry megabytes of log. */
const BATCH = 200;
/** Content of a snapshot that no kept release needs. It cannot be deployed again. */
const EXPIRED = '{"services": [], "shared": [], "expired": true}';

/**
 * Removes releases that are older than `days` and beyond the newest `kept` of their service. Their images get tombstones in the same
 * transaction, and their snapshots lose what only a rollback needs. A running release stays, and so does everything of a service with a
 * deployment under way, which may be a rollback to one of them. Returns the number of removed releases.
 */
export async function trimReleases(db: Database, limits: { kept: number; days: number }): Promise<number> {
  return removeReleases(
    db,
    sql`ranked.rank > ${limits.kept} and ranked.created_at < now() - make_interval(days => ${limits.days})`,
  );
}

/**
 * Removes the oldest releases on a machine beyond the newest `kept` of each service, whatever their age. Called when images take too much.
 */
export async function trimReleasesOfNode(
  db: Database,
  limits: { kept: number; nodeId: string; count: number },
): Promise<number> {
  return removeReleases(
    db,
    sql`ranked.id in (
      select ranked.id from ranked
      join service on service.id = ranked.service_id
      join environment on environment.id = service.environment_id
      join cluster on cluster.id = environment.cluster_id
      where ranked.rank > ${limits.kept} and cluster.node_id = ${limits.nodeId}
      order by ranked.created_at limit ${limits.count})`,
  );
}

async function removeReleases(db: Database, condition: ReturnType<typeof sql>): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    with ranked as (
      select id, service_id, created_at, row_number() over (partition by service_id order by created_at desc, id) as rank from release
    ), gone as (
      delete from release using ranked, service
      where release.id = ranked.id and service.id = release.service_id and ${condition}
        and service.release_id is distinct from release.id
        and not exists (select from deployment_service s join deployment d on d.id = s.deployment_id
          where d.status <> 'ENDED' and s.service_id = service.id)
      returning release.id, release.deployment_id
    ), thinned as (
      update deployment set snapshot = snapshot || ${EXPIRED}::jsonb
      where id in (select deployment_id from gone)
        and not exists (select from release where release.deployment_id = deployment.id and release.id not in (select id from gone))
    )
    select id from gone`.execute(db);
  return rows.length;
}

/**
 * Removes the configuration from snapshots of deployments that ended between one and three days ago and left no release: stops, deletes and
 * failures. The versions of secrets that they name would otherwise be kept for them.
 */
export async function thinSnapshots(db: Database): Promise<void> {
  await sql`update deployment set snapshot = snapshot || ${EXPIRED}::jsonb
    where status = 'ENDED' and ended_at between now() - interval '3 days' and now() - interval '1 day'
      and not snapshot ? 'expired'
      and not exists (select from release where release.deployment_id = deployment.id)`.execute(db);
}

/**
 * Removes ended deployments that are older than `days`, or of which every service has `kept` newer ones. Their steps and logs go with them.
 * Deployments that a kept release names stay, and those that the present state of a service or an environment is derived from. Returns the
 * number of removed deployments.
 */
export function trimDeployments(
  db: Database,
  limits: { kept: number; days: number },
  signal: AbortSignal,
): Promise<number> {
  return inBatches(BATCH, signal, () => removeDeployments(db, limits));
}

async function removeDeployments(db: Database, limits: { kept: number; days: number }): Promise<number> {
  const result = await sql`
    with oldest_kept as (
      select service.id as service_id, nth.number from service cross join lateral (
        select number from deployment_service where service_id = service.id order by number desc offset ${limits.kept - 1} limit 1) nth
    )
    delete from deployment where id in (
      select d.id from deployment d join environment e on e.id = d.environment_id
      where d.status = 'ENDED'
        and (
          d.ended_at < now() - make_interval(days => ${limits.days})
          or d.number <= e.deployment_number - ${limits.kept} and not exists (
            select from deployment_service s left join oldest_kept k on k.service_id = s.service_id
            where s.deployment_id = d.id and (k.number is null or s.number >= k.number))
        )
        and not exists (select from release r where r.deployment_id = d.id)
        and not exists (
          select from deployment_service s join service on service.id = s.service_id
          where s.deployment_id = d.id and not exists (
            select from deployment_service newer join deployment n on n.id = newer.deployment_id
            where newer.service_id = s.service_id and newer.number > s.number and n.status = 'ENDED'))
        and exists (
          select from deployment newer where newer.environment_id = d.environment_id and newer.number > d.number
            and newer.status = 'ENDED' and (newer.whole_environment or newer.action <> 'DELETE'))
      limit ${BATCH})`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}

/** Repeats a statement that removes at most `BATCH` rows until none is left. */
const inBatchesOf = (db: Database, signal: AbortSignal, statement: ReturnType<typeof sql>): Promise<number> =>
  inBatches(BATCH, signal, () => countChanged(db, statement));

/**
 * Removes logs of deployments that ended more than `days` ago. While all logs together take more than `megabytes` (0: no limit), the oldest
 * are removed too.
 */
export async function trimLogs(
  db: Database,
  limits: { days: number; megabytes: number },
  signal: AbortSignal,
): Promise<void> {
  await inBatchesOf(
    db,
    signal,
    sql`delete from deployment_log where deployment_id in (
      select d.id from deployment d
      where d.status = 'ENDED' and d.ended_at < now() - make_interval(days => ${limits.days})
        and exists (select from deployment_log l where l.deployment_id = d.id)
      limit ${BATCH})`,
  );
  if (limits.megabytes === 0) return;
  const bytes = limits.megabytes * 2 ** 20;
  const { rows } = await sql<{ bytes: number }>`select pg_total_relation_size('deployment_log') as bytes`.execute(db);
  // The table's own size is known at once, and is never less than what is in it.
  if (rows[0]!.bytes <= bytes) return;
  const { rows: over } = await sql<{ id: string }>`
    with sized as (select deployment_id, sum(octet_length(content)) as bytes from deployment_log group by deployment_id),
    ranked as (
      select d.id, d.status, sum(sized.bytes) over (order by d.created_at desc, d.id) as total
      from sized join deployment d on d.id = sized.deployment_id)
    select id from ranked where total > ${bytes} and status = 'ENDED' order by total desc`.execute(db);
  for (let from = 0; from < over.length; from += BATCH) {
    signal.throwIfAborted();
    const ids = over.slice(from, from + BATCH).map(({ id }) => id);
    await sql`delete from deployment_log where deployment_id = any(${ids})`.execute(db);
  }
}

/**
 * Removes executions that ended more than `days` ago or are beyond the newest `kept` of their service. Their logs go with them, and logs
 * alone after `logDays`. An execution stays while its runtime still has tasks of it.
 */
export async function trimExecutions(
  db: Database,
  limits: { kept: number; days: number; logDays: number },
  signal: AbortSignal,
): Promise<void> {
  const ended = sql`('SUCCEEDED', 'FAILED', 'CANCELED')`;
  await inBatchesOf(
    db,
    signal,
    sql`with oldest_kept as (
        select service.id as service_id, nth.created_at, nth.id from service cross join lateral (
          select created_at, id from job_execution where service_id = service.id and state in ${ended}
          order by created_at desc, id offset ${limits.kept - 1} limit 1) nth
      )
      delete from job_execution where id in (
        select x.id from job_execution x left join oldest_kept k on k.service_id = x.service_id
        where x.state in ${ended} and x.tasks = '{}' and (
          x.ended_at < now() - make_interval(days => ${limits.days})
          or x.created_at < k.created_at or x.created_at = k.created_at and x.id > k.id)
        limit ${BATCH})`,
  );
  await inBatchesOf(
    db,
    signal,
    sql`delete from job_execution_log where execution_id in (
      select x.id from job_execution x
      where x.ended_at < now() - make_interval(days => ${limits.logDays})
        and exists (select from job_execution_log l where l.execution_id = x.id)
      limit ${BATCH})`,
  );
}

/** Removes work on clusters that ended longer than `days` ago, with its log; the newest of each cluster stays. */
export const trimClusterWork = (db: Database, days: number, signal: AbortSignal): Promise<number> =>
  inBatchesOf(
    db,
    signal,
    sql`delete from cluster_work where id in (
      select w.id from cluster_work w
      where status = 'ENDED' and ended_at < now() - make_interval(days => ${days})
        and exists (select from cluster_work newer
          where newer.cluster_id = w.cluster_id and newer.number > w.number and newer.status = 'ENDED')
      limit ${BATCH})`,
  );

/** Days for which machines look for the checkouts of a removed deployment. */
const CHECKOUT_DAYS = 30;
/** Days for which a machine, or a deleted cluster, may be away before its tombstones are given up. */
const NODE_DAYS = 90;

/** Removes tombstones that no machine processes any more. Returns how many belong to machines or clusters that have been away for NODE_DAYS. */
export async function trimTombstones(db: Database): Promise<number> {
  await sql`delete from tombstone where kind = 'DEPLOYMENT' and created_at < now() - make_interval(days => ${CHECKOUT_DAYS})`.execute(
    db,
  );
  const lost = await sql`delete from tombstone t using node where node.id = t.node_id
    and node.seen_at < now() - make_interval(days => ${NODE_DAYS})`.execute(db);
  const unreachable = await sql`delete from tombstone t using cluster_remains r where r.cluster_id = t.cluster_id
    and r.created_at < now() - make_interval(days => ${NODE_DAYS})`.execute(db);
  return Number(lost.numAffectedRows ?? 0) + Number(unreachable.numAffectedRows ?? 0);
}

/** Forgets nodes that were lost long ago and own neither a cluster nor anything that has to be removed there. Returns their ids. */
export async function forgetNodes(db: Database): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`select n.id from node n where n.lost_at is not null
    and not exists (select from cluster c where c.node_id = n.id)
    and not exists (select from tombstone t where t.node_id = n.id)`.execute(db);
  return rows.length === 0
    ? []
    : forgetLost(
        db,
        rows.map(({ id }) => id),
      );
}
