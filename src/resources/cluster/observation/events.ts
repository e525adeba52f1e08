import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { Static } from '#platform/http/schema.ts';
import type { ClusterRow } from '#resources/cluster/queries.ts';
import type { EventsQuery } from '#resources/cluster/schema/observation.ts';
import { parseTime } from '#resources/cluster/observation/time.ts';
import { listWorkBetween } from '#resources/cluster/work/queries.ts';

/** Component that reports every event of a cluster. */
const COMPONENT = 'quarterdeck';

/**
 * Lists the events of a cluster's own work within a time, oldest first. Events of Kubernetes objects are not collected, so that a pod has
 * none here.
 */
export async function clusterEvents(context: Context, cluster: ClusterRow, query: Static<typeof EventsQuery>) {
  const from = parseTime('from_date_time', query.from_date_time);
  const to = parseTime('to_date_time', query.to_date_time);
  if (from > to) throw invalidField('from_date_time', 'must not be after to_date_time');
  const none =
    query.pod_name !== undefined ||
    (query.node_name !== undefined && query.node_name !== cluster.node_id) ||
    (query.reporting_component !== undefined && query.reporting_component !== COMPONENT);
  if (none) return { results: [] };
  const rows = await listWorkBetween(context.db, { organizationId: cluster.organization_id }, cluster.id, from, to);
  const results = rows.flatMap((row) => [
    event(cluster, row.created_at, 'Normal', `${row.action}_REQUESTED`, `Requested by ${row.requested_by_name}.`),
    ...(row.ended_at === null
      ? []
      : [
          row.outcome === 'SUCCESS'
            ? event(cluster, row.ended_at, 'Normal', `${row.action}_SUCCEEDED`, 'Ended with success.')
            : event(cluster, row.ended_at, 'Warning', `${row.action}_FAILED`, row.error ?? ''),
        ]),
  ]);
  return {
    results: results
      .filter(({ at }) => at >= from && at <= to)
      .sort((a, b) => a.at.getTime() - b.at.getTime())
      .map(({ at: _at, ...view }) => view),
  };
}

const event = (cluster: ClusterRow, at: Date, type: 'Normal' | 'Warning', reason: string, message: string) => ({
  at,
  created_at: at.toISOString(),
  kind: 'Cluster',
  name: cluster.name,
  reason,
  message,
  type,
  reporting_component: COMPONENT,
  count: 1,
  first_occurrence: at.toISOString(),
  last_occurrence: at.toISOString(),
});
