import { countChanged, inBatches } from '#platform/database/batches.ts';
import { sql, type Database } from '#platform/database/index.ts';

/** Rows that one transaction removes at most: each has up to a megabyte. */
const BATCH = 200;

interface PodLog {
  service_id: string;
  pod_uid: string;
  pod_name: string;
  ended_at: Date;
  content: Buffer;
}

/**
 * Keeps the log of a pod of a service, if the environment has that service on the cluster. A log that was longer before stays as it is: it
 * was read by a process that had more of it.
 */
export const keepPodLog = (db: Database, log: PodLog, of: { clusterId: string; environmentId: string }) =>
  sql`insert into pod_log (organization_id, service_id, pod_uid, pod_name, ended_at, content)
    select s.organization_id, s.id, ${log.pod_uid}, ${log.pod_name}, ${log.ended_at}, ${log.content}
    from service s join environment e on e.id = s.environment_id
    where s.id = ${log.service_id} and e.id = ${of.environmentId} and e.cluster_id = ${of.clusterId}
    for key share of s
    on conflict (service_id, pod_uid) do update set content = excluded.content
    where octet_length(excluded.content) > octet_length(pod_log.content)`.execute(db);

/** Logs of a service that are kept at most: each is read by a statement of its own. */
const MOST_LOGS = 500;

/** Removes the oldest logs of a service above a number of bytes, or above that many. */
export const trimPodLogs = (db: Database, serviceId: string, bytes: number) =>
  sql`delete from pod_log using (
      select pod_uid, sum(octet_length(content)) over newest_first as bytes, row_number() over newest_first as place
      from pod_log where service_id = ${serviceId} window newest_first as (order by ended_at desc, pod_uid)) ranked
    where pod_log.service_id = ${serviceId} and pod_log.pod_uid = ranked.pod_uid
      and (ranked.bytes > ${bytes} or ranked.place > ${MOST_LOGS})`.execute(db);

/** Lists the logs of a service, the one that ended last first, without those that ended before a time. */
export const listPodLogs = (db: Database, serviceId: string, since: Date) =>
  db
    .selectFrom('pod_log')
    .select(['pod_uid', 'pod_name', 'ended_at'])
    .where('service_id', '=', serviceId)
    .where('ended_at', '>=', since)
    .orderBy('ended_at', 'desc')
    .orderBy('pod_uid')
    .execute();

/** Reads the content of a log; undefined once it was removed. */
export const readPodLog = (db: Database, serviceId: string, podUid: string) =>
  db
    .selectFrom('pod_log')
    .select('content')
    .where('service_id', '=', serviceId)
    .where('pod_uid', '=', podUid)
    .executeTakeFirst();

/** Removes logs of pods that ended before a time. */
export const removePodLogs = (db: Database, before: Date, signal: AbortSignal) =>
  inBatches(BATCH, signal, () =>
    countChanged(
      db,
      sql`delete from pod_log where ctid = any(array(select ctid from pod_log where ended_at < ${before} limit ${BATCH}))`,
    ),
  );
