import { setTimeout as sleep } from 'node:timers/promises';
import { badGateway } from '#kernel/errors.ts';
import type { EventStreams } from '#platform/events/stream.ts';
import { Type } from '#platform/http/schema.ts';
import { defineSocket, type Peer, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import {
  listExecutions,
  readExecutionLog,
  readExecutionLogAfter,
  readLastLines,
  type ExecutionLine,
} from '#deployments/index.ts';
import {
  hasText,
  isChosen,
  refuseInstances,
  SEARCHED,
  selectKept,
  SelectionQuery,
  toLogOptions,
  type Selection,
} from '#services/capabilities/service/logs/selection.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/service/sockets/needs.ts';
import { runtimeOf } from '#services/capabilities/service/sockets/runtime.ts';
import { serviceOfQuery } from '#services/capabilities/service/sockets/targets.ts';
import { findServiceById } from '#services/service/queries.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import type { Handle, LogLine, Runtime } from '#runtimes/runtime.ts';

type LogCall = SocketCall<ServiceTarget, Selection>;

/** Lines from before the opening that are sent first. */
const TAIL = 1000;
/** Milliseconds between two reads of new lines of executions, which no event announces. */
const LOOK_MS = 1_000;

/** Makes the socket that sends the log of a service while it is written. */
export const serviceLogSocket = (needs: ServiceSocketNeeds): Socket =>
  defineSocket({
    id: 'followServiceLogs',
    path: '/service/logs',
    summary: `The last ${TAIL} lines that a service wrote, then new ones as they come, those of later deployments and runs included`,
    frames: 'text, each a line: `{"created_at": <ms since 1970>, "message", "pod_name", "version"}`',
    target: serviceOfQuery,
    action: 'service.read',
    query: Type.Object(SelectionQuery),
    open: async (call: LogCall) => {
      if (needs.kindsWithRuns.includes(call.target.kind)) {
        refuseInstances(call.query);
        return (peer) => followRuns(call, peer);
      }
      // Before the handshake, as long as another machine can still be asked instead of this one.
      const runtime = await runtimeOf(needs, call.target);
      return (peer) => followInstances(call, runtime, needs.streams, peer);
    },
  });

/** Returns the number of lines from before the opening that are read: more where only some are wanted. */
const tailOf = ({ text }: Selection): number => (text === undefined ? TAIL : SEARCHED);

const frameOf = (line: { at: string; text: string; instance?: string; generation?: number }): string =>
  JSON.stringify({
    created_at: Date.parse(line.at),
    message: line.text,
    pod_name: line.instance ?? '',
    version: line.generation === undefined ? '' : String(line.generation),
  });

async function followInstances(call: LogCall, runtime: Runtime, streams: EventStreams, peer: Peer): Promise<void> {
  const { target } = call;
  const options = { ...toLogOptions(call.query), signal: peer.signal };
  let handle = target.handle as Handle | null;
  if (handle === null) {
    await sendKept(call, peer);
    handle = await awaitHandle(call, streams, peer.signal);
    if (handle === null) return;
  }
  try {
    let isEmpty = true;
    for await (const _line of runtime.logs(handle, { ...options, tail: 1, follow: false })) isEmpty = false;
    if (isEmpty) await sendKept(call, peer);
    const isFound = hasText(call.query);
    for await (const line of runtime.logs(handle, { ...options, tail: tailOf(call.query), follow: true }))
      if (isFound(line.text)) await peer.send(frameOf(line));
  } catch (error) {
    if (peer.signal.aborted) return;
    throw badGateway(`The log cannot be read from the cluster: ${(error as Error).message}`, error);
  }
}

/** Sends the last lines of the newest instance that did not become ready. */
async function sendKept({ db, target, query }: LogCall, peer: Peer): Promise<void> {
  const lines: LogLine[] = await readLastLines(db, target, target.id);
  for (const line of selectKept(lines, query)) await peer.send(frameOf(line));
}

/** Waits for the first deployment of a service and returns its handle; null if the client disconnects before. */
async function awaitHandle(
  { db, target }: LogCall,
  streams: EventStreams,
  signal: AbortSignal,
): Promise<Handle | null> {
  const filter = {
    organizationId: target.organizationId,
    environmentId: target.environmentId,
    serviceId: target.id,
    types: ['service-state', 'step'] as const,
  };
  for await (const _items of streams.open(filter, undefined, () => true, signal)) {
    const row = await findServiceById(db, [target.organizationId], target.id);
    if (row?.handle) return row.handle as unknown as Handle;
  }
  return null;
}

/** Sends the last lines of the newest execution, then its new lines, then those of each later one. */
async function followRuns({ db, target, query }: LogCall, peer: Peer): Promise<void> {
  const isWanted = isChosen(query);
  let run: { id: string; deployment_id: string | null; service_id: string } | undefined;
  let sequence = 0;
  const send = async ({ lines, last }: { lines: ExecutionLine[]; last: number }) => {
    sequence = last;
    for (const line of lines) if (isWanted(line.at, line.text)) await peer.send(frameOf(line));
  };
  for (let isFirst = true; !peer.signal.aborted; isFirst = false) {
    const newest = await listExecutions(db, target, target.id).limit(1).executeTakeFirst();
    if (run) await send(await readExecutionLogAfter(db, target, run, sequence));
    if (newest && newest.id !== run?.id) {
      run = { id: newest.id, deployment_id: newest.deployment_id, service_id: target.id };
      await send(
        isFirst
          ? await readExecutionLog(db, target, run, tailOf(query))
          : await readExecutionLogAfter(db, target, run, 0),
      );
    }
    await sleep(LOOK_MS, undefined, { signal: peer.signal }).catch((error: Error) => {
      if (error.name !== 'AbortError') throw error;
    });
  }
}
