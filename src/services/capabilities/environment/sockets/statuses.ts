import type { TSchema } from 'typebox';
import { inSnapshot } from '#platform/context.ts';
import type { EventStreams } from '#platform/events/stream.ts';
import { serialize } from '#platform/http/compile.ts';
import { defineSocket, type Peer, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import { environmentOfQuery, type EnvironmentSocketNeeds } from '#services/capabilities/environment/sockets/needs.ts';
import { allStatuses, statusesByStage } from '#services/capabilities/environment/status/list.ts';
import {
  EnvironmentStatuses,
  EnvironmentStatusesWithStages,
} from '#services/capabilities/environment/status/schema.ts';

/** Statuses as they change. */
export const statusSockets = ({ streams }: EnvironmentSocketNeeds): Socket[] => [
  statusSocket(streams, {
    id: 'followServiceStatus',
    path: '/service/status',
    summary: 'Statuses of an environment and of its services of all kinds, whenever one changes',
    schema: EnvironmentStatuses,
    read: (call) => allStatuses(call, call.target),
  }),
  statusSocket(streams, {
    id: 'followDeploymentStatus',
    path: '/deployment/status',
    summary: 'The same statuses by stages of deployments',
    schema: EnvironmentStatusesWithStages,
    read: (call) => statusesByStage(call, call.target),
  }),
];

const statusSocket = (
  streams: EventStreams,
  parts: Pick<Socket, 'id' | 'path' | 'summary'> & {
    schema: TSchema;
    read(call: SocketCall<EnvironmentTarget>): Promise<unknown>;
  },
): Socket => {
  const { schema, read, ...socket } = parts;
  return defineSocket({
    ...socket,
    frames: `text, each a \`${String((schema as { title?: string }).title)}\``,
    target: environmentOfQuery,
    action: 'environment.read',
    open: (call) => (peer) =>
      pushStatuses(peer, streams, call, () =>
        inSnapshot(call, async (inside) => serialize(schema, await read(inside))),
      ),
  });
};

/** Sends a text at the beginning, and again when something happened in the environment that changes it. */
async function pushStatuses(
  peer: Peer,
  streams: EventStreams,
  { target }: SocketCall<EnvironmentTarget>,
  read: () => Promise<string>,
): Promise<void> {
  const filter = {
    organizationId: target.organizationId,
    environmentId: target.id,
    types: ['deployment', 'service-state', 'service-warning', 'step', 'audit'] as const,
  };
  let sent: string | undefined;
  // What happens while a text is read or taken comes with the next items: it is read once for all of them.
  for await (const items of streams.open(filter, undefined, () => true, peer.signal)) {
    if (sent !== undefined && !items.some(({ row, missing }) => row || missing)) continue;
    const text = await read();
    if (text !== sent) await peer.send(text);
    sent = text;
  }
}
