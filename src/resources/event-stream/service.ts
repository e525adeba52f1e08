import { badRequest, invalidField } from '#kernel/errors.ts';
import type { Principal } from '#platform/access/principal.ts';
import {
  looksLikeCursor,
  STREAM_TYPES,
  type EventStreams,
  type StreamFilter,
  type StreamItem,
} from '#platform/events/stream.ts';
import type { Call } from '#platform/http/route.ts';
import type { Slots } from '#platform/http/slots.ts';
import { heartbeat, OPENING } from '#platform/http/server-sent-events.ts';
import { EventStreamAnswer } from '#platform/http/stream.ts';
import type { OrganizationTarget } from '#resources/organization/index.ts';
import { mayRead } from '#resources/event-stream/access.ts';
import { LogLines } from '#resources/event-stream/log-lines.ts';
import * as queries from '#resources/event-stream/queries.ts';
import type { StreamQuery } from '#resources/event-stream/schema.ts';
import * as view from '#resources/event-stream/view.ts';

type StreamCall = Call<OrganizationTarget, { organizationId: string }, StreamQuery>;

/** Types that a stream has by default: all but log lines, which are many. */
const DEFAULT_TYPES = STREAM_TYPES.filter((type) => type !== 'log');

/** Log rows whose text is in memory at once for one stream. */
const LOGS_AT_ONCE = 8;

/** Opens a stream. Every refusal is thrown here, before the answer begins. */
export async function openStream(call: StreamCall, streams: EventStreams, slots: Slots): Promise<EventStreamAnswer> {
  const filter = await checkFilter(call);
  const cursor = checkCursor(call);
  const release = slots.take(call.principal.id, {
    perCaller: call.settings.streamsPerToken,
    perProcess: call.settings.streams,
  });
  const logs = new LogLines(call.db, filter);
  return new EventStreamAnswer({
    principal: call.principal,
    text: (signal, who) => write(streams, filter, cursor, logs, signal, who),
    ended: release,
  });
}

async function* write(
  streams: EventStreams,
  filter: StreamFilter,
  cursor: string | undefined,
  logs: LogLines,
  signal: AbortSignal,
  who: () => Principal,
): AsyncGenerator<string> {
  yield OPENING;
  for await (const items of streams.open(filter, cursor, (row) => mayRead(who(), row), signal))
    for (const group of groupsOf(items)) {
      // What was queued for a slow client is asked about once more: its role may have changed meanwhile.
      const allowed = group.filter(({ row }) => !row || mayRead(who(), row));
      const texts = await Promise.all(allowed.map((item) => textOf(item, logs)));
      const text = texts.filter((part) => part !== null).join('');
      if (text) yield text;
    }
}

async function textOf(item: StreamItem, logs: LogLines): Promise<string | null> {
  const { row, cursor, missing } = item;
  if (missing) return view.reset({ cursor, missing });
  if (!row) return heartbeat(cursor);
  return row.type === 'log' ? view.logText(row, cursor, await logs.of(row)) : view.textOf(row, cursor);
}

/** Splits items into groups with at most `LOGS_AT_ONCE` log rows each. */
function* groupsOf(items: StreamItem[]): Generator<StreamItem[]> {
  let group: StreamItem[] = [];
  let logs = 0;
  for (const item of items) {
    if (item.row?.type === 'log' && ++logs > LOGS_AT_ONCE) {
      yield group;
      [group, logs] = [[], 1];
    }
    group.push(item);
  }
  yield group;
}

function checkCursor({ headers, query }: StreamCall): string | undefined {
  const header = headers['last-event-id'];
  const cursor = header === undefined || header === '' ? query.lastEventId : String(header);
  if (cursor === undefined || cursor === '') return undefined;
  if (!looksLikeCursor(cursor))
    throw invalidField(header ? 'Last-Event-ID' : 'lastEventId', 'must be the `id` of an event of this stream');
  return cursor;
}

/** Returns the filter, checked for the caller; 400 for ids that this organization doesn't have, 403 for what the role forbids. */
async function checkFilter(call: StreamCall): Promise<StreamFilter> {
  const { query, target } = call;
  const { projectId, environmentId, serviceId, deploymentRequestId: deploymentId } = query;
  const types = query.types ?? DEFAULT_TYPES;
  if (types.includes('log') && !environmentId && !serviceId && !deploymentId)
    throw badRequest(
      'types: log lines are sent of one place only: add environmentId, serviceId or deploymentRequestId.',
      [{ field: 'types', message: 'log takes environmentId, serviceId or deploymentRequestId beside it' }],
    );
  let inside = environmentId;
  for (const [field, id, find, action] of [
    ['projectId', projectId, queries.findProjectPlace, 'project.read'],
    ['environmentId', environmentId, queries.findEnvironmentPlace, 'environment.read'],
    ['serviceId', serviceId, queries.findServicePlace, 'service.read'],
    ['deploymentRequestId', deploymentId, queries.findDeploymentPlace, 'environment.read'],
  ] as const) {
    if (id === undefined) continue;
    const place = await find(call.db, target, id);
    if (!place) throw invalidField(field, 'names nothing in this organization');
    call.require(action, {
      organizationId: target.organizationId,
      projectId: place.project_id,
      environmentId: place.environment_id ?? undefined,
      mode: place.mode ?? undefined,
      clusterId: place.cluster_id ?? undefined,
    });
    // A service has one environment: naming it keeps the logs of others from being read for its lines.
    inside ??= place.environment_id ?? undefined;
  }
  return { organizationId: target.organizationId, types, projectId, environmentId: inside, serviceId, deploymentId };
}
