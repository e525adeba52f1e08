import { invalidField } from '#kernel/errors.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import type { Slots } from '#platform/http/slots.ts';
import { inSnapshot, type Context } from '#platform/context.ts';
import { readLastLines } from '#deployments/index.ts';
import { readNewestLog } from '#services/capabilities/service/executions/index.ts';
import { fromCluster, runtimeOfLog, tailOf } from '#services/capabilities/service/logs/followed.ts';
import { LineIds } from '#services/capabilities/service/logs/line-id.ts';
import { ServiceLogList, ServiceLogText } from '#services/capabilities/service/logs/schema.ts';
import {
  FollowQuery,
  hasText,
  isChosen,
  PreviousQuery,
  refuseInstances,
  selectKept,
  asksForFormer,
  SelectionQuery,
  toLogOptions,
  type Selection,
} from '#services/capabilities/service/logs/selection.ts';
import { openLogStream } from '#services/capabilities/service/logs/stream.ts';
import { toRunLog, toServiceLog } from '#services/capabilities/service/logs/view.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import type { Handle, LogLine, LogOptions, Runtime } from '#runtimes/runtime.ts';

const TAIL_DEFAULT = 1000;

/** `GET /<kind>/{id}/log`: what the instances wrote, read from the runtime. `slots` counts the followed logs of all kinds. */
export const serviceLogRoutes = (kind: Kind, needs: ServiceNeeds, slots: Slots): Route[] => [
  defineRoute({
    id: `list${kind.tag}Log`,
    method: 'GET',
    path: `/${kind.path}/{${paramOf(kind)}}/log`,
    tag: `${kind.tag} Logs`,
    summary: `List the last lines that a service of kind ${kind.path} wrote, oldest first`,
    description:
      'With `since` or `pod_name`, lines of instances that have ended are among them, as long as the operator keeps those. Where nothing runs: up to 200 lines of the last instance that did not get ready. `follow=true` sends new lines as they come, until the service is deleted or you may read it no longer; `Last-Event-ID` goes on after a line. An event `skipped` tells of lines that are missing, a last event `end` says why the stream ends.',
    target: holderOf(kind).target,
    action: 'service.read',
    query: Type.Object({
      ...FollowQuery,
      tail: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, description: 'Number of lines, 1000 without.' })),
      ...SelectionQuery,
      ...PreviousQuery,
    }),
    answer: { status: 200, body: ServiceLogList, stream: ServiceLogText },
    errors: [502],
    transaction: false,
    handler: async (call) => {
      const tail = call.query.tail ?? TAIL_DEFAULT;
      const hasRuns = kind.capabilities?.executions !== undefined;
      if (call.query.follow) return openLogStream(call, { needs, streams: needs.streams, slots, hasRuns, tail });
      if (call.query.lastEventId !== undefined)
        throw invalidField('lastEventId', 'must be left out without follow=true: only a followed log resumes');
      // Kinds that run to an end write into the log of their execution.
      if (hasRuns) {
        refuseInstances(call.query);
        const isWanted = isChosen(call.query);
        const most = tailOf(call.query, tail);
        const { run, lines } = await inSnapshot(call, (inside) => readNewestLog(inside, call.target, most));
        const ids = new LineIds();
        const views = lines.map(({ at, text }) => toRunLog({ run, at, text }, ids));
        return { results: views.filter((line) => isWanted(line.created_at, line.message)).slice(-tail) };
      }
      const lines = await readLines(call, needs, call.target, { ...call.query, tail });
      const ids = new LineIds();
      return { results: lines.map((line) => toServiceLog(line, ids)) };
    },
  }),
];

async function readLines(
  call: Context & { signal: AbortSignal },
  needs: ServiceNeeds,
  service: ServiceTarget,
  { tail, ...selection }: Selection & { tail: number },
): Promise<LogLine[]> {
  const kept = async () => selectKept(await readLastLines(call.db, service, service.id), selection).slice(-tail);
  const hasFormer = asksForFormer(selection);
  // Nothing runs: what the last instance wrote that did not get ready is all that there is.
  if (!service.handle && !hasFormer) return kept();
  const runtime = await runtimeOfLog(needs, service);
  const options = { ...toLogOptions(selection), signal: call.signal, tail: tailOf(selection, tail) };
  const lines = await collect(fromCluster(readAll(runtime, service, { ...options, hasFormer }), call.signal));
  if (lines.length === 0) return kept();
  const isFound = hasText(selection);
  const newest = lines.slice(-options.tail);
  return newest.filter(({ text }) => isFound(text)).slice(-tail);
}

/** Yields the lines of the present instances of a service, with `hasFormer` also those of former ones, oldest first. */
async function* readAll(
  runtime: Runtime,
  { id: serviceId, handle }: ServiceTarget,
  { hasFormer, ...options }: Omit<LogOptions, 'follow'> & { hasFormer: boolean },
): AsyncGenerator<LogLine> {
  const present = handle ? runtime.logs(handle as Handle, { ...options, follow: false }) : null;
  if (present && (!hasFormer || !runtime.formerLogs)) return yield* present;
  if (!runtime.formerLogs) return;
  const former = await runtime.formerLogs({ serviceId }, options);
  const all = [...former, ...(present ? await collect(present) : [])];
  yield* all.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));
}

async function collect(lines: AsyncIterable<LogLine>): Promise<LogLine[]> {
  const all: LogLine[] = [];
  for await (const line of lines) all.push(line);
  return all;
}
