import { badRequest, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { Static } from '#platform/http/schema.ts';
import type { ClusterRow } from '#resources/cluster/queries.ts';
import type { LogsQuery } from '#resources/cluster/schema/observation.ts';
import { matches, parseSelector } from '#resources/cluster/observation/selector.ts';
import { parseDuration, parseTime } from '#resources/cluster/observation/time.ts';
import { listLogs, type LogRow } from '#resources/cluster/work/queries.ts';

const HOUR_MS = 3_600_000;
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 5000;
const HELP =
  'write it as {cluster_id="…", action="DEPLOY"} |= "text"; only = and != of labels and |= and != of lines are understood';

/** Lists the log lines of the work on a cluster, oldest first. A limited number of works is kept, so that the list has an end. */
export async function clusterLogs(context: Context, cluster: ClusterRow) {
  const rows = await listLogs(context.db, { organizationId: cluster.organization_id }, cluster.id).execute();
  return { results: rows.map((row) => toLogView(cluster, row)) };
}

function toLogView(cluster: ClusterRow, row: LogRow) {
  const details = {
    provider_kind: cluster.cloud_provider,
    region: cluster.region,
    transmitter: { type: 'Cluster', id: cluster.id, name: cluster.name },
  };
  return {
    type: row.is_error ? 'error' : 'info',
    timestamp: row.at.toISOString(),
    step: row.step,
    message: { safe_message: row.message },
    ...(row.is_error
      ? {
          error: {
            tag: row.step,
            user_log_message: row.message,
            ...(row.hint === null ? {} : { hint_message: row.hint }),
            event_details: details,
          },
        }
      : {}),
    details,
  };
}

/** Queries the same lines by the interface of Loki: `query` and `query_range` answer streams, `labels` the names of labels. */
export async function queryLogs(context: Context, cluster: ClusterRow, query: Static<typeof LogsQuery>) {
  const endpoint = query.endpoint.replace(/^.*\//, '');
  if (endpoint === 'labels') return answer(Object.keys(labelsOf(cluster, { action: '', step: '', is_error: false })));
  if (endpoint !== 'query' && endpoint !== 'query_range')
    throw invalidField('endpoint', 'must be query, query_range or labels');
  const selector = parseSelector(query.query, HELP);
  if (selector.name !== null || selector.matchers.length === 0) throw badRequest(`query: ${HELP}`);
  const { from, to } = rangeOf(query, context.clock.now());
  const rows = await listLogs(context.db, { organizationId: cluster.organization_id }, cluster.id)
    .where('cluster_log.at', '>=', from)
    .where('cluster_log.at', '<=', to)
    .execute();
  const forward = query.direction === 'forward';
  const found = rows
    .filter((row) => matches(selector.matchers, labelsOf(cluster, row)))
    .filter((row) => selector.filters.every(({ contains, text }) => row.message.includes(text) === contains));
  if (!forward) found.reverse();
  const apart = query.interval === undefined ? 0 : parseDuration('interval', query.interval);
  const rare = withIntervals(found, apart);
  return answer({ resultType: 'streams', result: streamsOf(cluster, rare.slice(0, limitOf(query.limit))) });
}

/** Returns the rows that are at least so many milliseconds from the one before, as `interval` of Loki does. */
function withIntervals(rows: LogRow[], apartMs: number): LogRow[] {
  let last = -Infinity;
  return rows.filter(({ at }) => {
    if (apartMs > 0 && Math.abs(at.getTime() - last) < apartMs) return false;
    last = at.getTime();
    return true;
  });
}

const answer = (data: unknown) => ({ response: JSON.stringify({ status: 'success', data }) });

const labelsOf = (cluster: ClusterRow, row: Pick<LogRow, 'action' | 'step' | 'is_error'>): Record<string, string> => ({
  cluster_id: cluster.id,
  cluster_name: cluster.name,
  app: 'quarterdeck',
  action: row.action,
  step: row.step,
  level: row.is_error ? 'error' : 'info',
});

function streamsOf(cluster: ClusterRow, rows: LogRow[]) {
  const streams = new Map<string, { stream: Record<string, string>; values: [string, string][] }>();
  for (const row of rows) {
    const stream = labelsOf(cluster, row);
    const key = JSON.stringify(stream);
    if (!streams.has(key)) streams.set(key, { stream, values: [] });
    streams.get(key)!.values.push([`${row.at.getTime()}000000`, row.message]);
  }
  return [...streams.values()];
}

/** Returns the time range of a query, by default the last hour. */
function rangeOf(query: Static<typeof LogsQuery>, now: Date): { from: Date; to: Date } {
  const end = query.end ?? query.time;
  const to = end === undefined ? now : parseTime(query.end === undefined ? 'time' : 'end', end);
  const since = query.since === undefined ? HOUR_MS : parseDuration('since', query.since);
  const from = query.start === undefined ? new Date(to.getTime() - since) : parseTime('start', query.start);
  if (from > to) throw invalidField('start', 'must not be after end');
  return { from, to };
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw invalidField('limit', `must be a whole number from 1 to ${MAX_LIMIT}`);
  return limit;
}
