import type { EventStreams } from '#platform/events/stream.ts';
import { Type } from '#platform/http/schema.ts';
import { defineSocket, type Peer, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import { instanceLines, tailOf } from '#services/capabilities/service/logs/followed.ts';
import { runLines } from '#services/capabilities/service/logs/followed-runs.ts';
import { RunPosition } from '#services/capabilities/service/logs/run-position.ts';
import {
  hasText,
  isChosen,
  refuseInstances,
  SelectionQuery,
  type Selection,
} from '#services/capabilities/service/logs/selection.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/service/sockets/needs.ts';
import { runtimeOf } from '#services/capabilities/service/sockets/runtime.ts';
import { serviceOfQuery } from '#services/capabilities/service/sockets/targets.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import type { Runtime } from '#runtimes/runtime.ts';

type LogCall = SocketCall<ServiceTarget, Selection>;

/** Lines from before the opening that are sent first. */
const TAIL = 1000;

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

const frameOf = (line: { at: string; text: string; instance?: string; generation?: number }): string =>
  JSON.stringify({
    created_at: Date.parse(line.at),
    message: line.text,
    pod_name: line.instance ?? '',
    version: line.generation === undefined ? '' : String(line.generation),
  });

async function followInstances(call: LogCall, runtime: Runtime, streams: EventStreams, peer: Peer): Promise<void> {
  const isFound = hasText(call.query);
  const following = { tail: tailOf(call.query, TAIL), signal: peer.signal };
  for await (const line of instanceLines(call, { runtime, streams }, call.query, following))
    if (isFound(line.text)) await peer.send(frameOf(line));
}

/** Sends the last lines of the newest execution, then the new lines of all that go on or begin later. */
async function followRuns(call: LogCall, peer: Peer): Promise<void> {
  const isWanted = isChosen(call.query);
  const following = { tail: tailOf(call.query, TAIL), signal: peer.signal };
  for await (const line of runLines(call, new RunPosition(), following))
    if (line && isWanted(line.at, line.text)) await peer.send(frameOf({ at: line.at, text: line.text }));
}
