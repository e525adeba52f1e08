import { anySignal } from '#kernel/lease-signal.ts';
import net, { type Socket as TcpSocket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { badRequest, conflict } from '#kernel/errors.ts';
import { OneOf, Type, type Static } from '#platform/http/schema.ts';
import { defineSocket, SocketEnd, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/service/sockets/needs.ts';
import { checkKind, deployedOn, endpointsOf, inTime } from '#services/capabilities/service/sockets/runtime.ts';
import { serviceOfQuery } from '#services/capabilities/service/sockets/targets.ts';
import { SERVICE_KINDS } from '#services/service/holder.ts';
import { placeOfService } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import type { InstanceEndpoints } from '#runtimes/runtime.ts';

/** Milliseconds that an instance may take to accept a connection. */
const CONNECT_MS = 10_000;

const PodsQuery = Type.Object({
  service_type: Type.Optional(OneOf(SERVICE_KINDS, { description: 'Has to be the kind of the service.' })),
  pod_name: Type.Optional(Type.String({ description: 'Instance, as `/service/pods` names it; any without.' })),
});
const ForwardQuery = Type.Object({
  ...PodsQuery.properties,
  port: Type.Integer({ minimum: 1, maximum: 65_535, description: 'One of the ports of the service.' }),
  LocalPort: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 65_535, description: "The client's own, for the audit event." }),
  ),
});
type ForwardCall = SocketCall<ServiceTarget, Static<typeof ForwardQuery>>;

/** Makes the socket that forwards a connection to a port of a service. */
export const portForwardSocket = (needs: ServiceSocketNeeds): Socket =>
  defineSocket({
    id: 'forwardServicePort',
    path: '/shell/portforward',
    summary: 'A TCP connection to a port of a service; a socket for each connection',
    frames: 'binary both ways, those to the client of at most 32,768 bytes',
    target: serviceOfQuery,
    action: 'service.portForward',
    query: ForwardQuery,
    input: 'binary',
    event: ({ target, query }: ForwardCall) => ({
      type: 'PORT_FORWARD',
      ...placeOfService(target),
      after: { port: query.port, local_port: query.LocalPort ?? null, instance: query.pod_name ?? null },
    }),
    open: async (call: ForwardCall) => {
      checkKind(call);
      const connection = await open(needs, call);
      // Also where the client leaves before the socket is open.
      call.signal.addEventListener('abort', () => connection.destroy(), { once: true });
      connection.on('error', () => undefined);
      return async (peer) => {
        const stop = () => connection.destroy();
        peer.signal.addEventListener('abort', stop, { once: true });
        try {
          // Sockets have no halves: what the service has said last is the end.
          const taken = pipeline(connection, peer.output(), { signal: peer.signal });
          const given = pipeline(peer.input(), connection);
          await Promise.all([taken, Promise.race([given, taken])]);
        } catch (error) {
          if (error instanceof SocketEnd) throw error;
          if (!peer.signal.aborted) throw new SocketEnd(1011, 'The connection to the service broke off.');
        } finally {
          connection.destroy();
        }
      };
    },
  });

/** Makes the socket that lists the serving instances of a service with their ports. */
export const podsSocket = (needs: ServiceSocketNeeds): Socket =>
  defineSocket({
    id: 'listServicePods',
    path: '/service/pods',
    summary: 'Instances of a service that serve, with their ports',
    frames: 'one text frame: `{"Pods": [{"Name", "Ports": [<port>]}]}`',
    target: serviceOfQuery,
    action: 'service.read',
    query: PodsQuery,
    open: async (call: SocketCall<ServiceTarget, Static<typeof PodsQuery>>) => {
      checkKind(call);
      const all = await endpointsOf(needs, call.target);
      const named = all.filter(({ instance }) => (call.query.pod_name ?? instance) === instance);
      const pods = named.map(({ instance, ports }) => ({
        Name: instance,
        Ports: ports.map(({ internalPort }) => internalPort),
      }));
      return (peer) => peer.send(JSON.stringify({ Pods: pods }));
    },
  });

/** Opens a connection to a port of the service: through its cluster where that is the only way. */
async function open(needs: ServiceSocketNeeds, call: ForwardCall): Promise<Duplex> {
  const { runtime, handle } = await deployedOn(needs, call.target);
  const { instance, address, port } = choose(await endpointsOf(needs, call.target), call);
  if (!runtime.openPort) return connect(address, port, call.signal);
  const opening = runtime.openPort(handle, { instance, port: call.query.port }, call.signal);
  try {
    return await inTime(opening);
  } catch (error) {
    // Nobody waits for a connection that comes late.
    void opening.then(
      (late) => late.destroy(),
      () => undefined,
    );
    throw error;
  }
}

function choose(all: InstanceEndpoints[], { target, query }: ForwardCall) {
  const instances = all.filter(({ instance }) => (query.pod_name ?? instance) === instance);
  if (instances.length === 0)
    throw conflict(
      query.pod_name === undefined
        ? `No instance of ${target.name} runs.`
        : `${target.name} has no instance ${query.pod_name}: /service/pods lists them.`,
    );
  const ports = instances.flatMap(({ instance, ports: some }) => some.map((port) => ({ ...port, instance })));
  const found = ports.find(({ internalPort }) => internalPort === query.port);
  if (found) return found;
  const known = [...new Set(ports.map(({ internalPort }) => internalPort))];
  throw badRequest(
    `port: must be one of the ports of ${target.name} that speak TCP and can be reached from here: ${known.join(', ') || 'it has none'}.`,
    [{ field: 'port', message: `must be one of ${known.join(', ') || 'none'}` }],
  );
}

/** Connects before the client is told that the socket is open. Throws 409 if nothing listens. */
async function connect(host: string, port: number, signal: AbortSignal): Promise<TcpSocket> {
  const connection = net.connect({ host, port, noDelay: true });
  const giveUp = anySignal([signal, AbortSignal.timeout(CONNECT_MS)]);
  const stop = () => connection.destroy(new Error(`no answer within ${CONNECT_MS / 1000} s`));
  giveUp.addEventListener('abort', stop, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      connection.once('connect', resolve);
      connection.once('error', reject);
      if (giveUp.aborted) stop();
    });
    return connection;
  } catch (error) {
    throw conflict(`The service does not accept connections on that port: ${(error as Error).message}.`);
  } finally {
    giveUp.removeEventListener('abort', stop);
  }
}
