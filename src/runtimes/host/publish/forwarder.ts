import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { PublishedPort, Table } from '#runtimes/host/publish/table.ts';
import type { Upstream } from '#runtimes/router.ts';

/** Milliseconds to wait for answers to a UDP sender after its last packet. */
const UDP_IDLE_MS = 60_000;

interface Listener {
  upstreams: Upstream[];
  close(): void;
}

/** Listens on published ports and forwards connections and packets to instances, in turn. */
export class Forwarder {
  readonly #listeners = new Map<string, Listener>();

  /** Opens and closes ports to match the table; open connections continue. Returns the ports that failed to open, with the reason. */
  async apply(table: Table): Promise<Record<string, string>> {
    const wanted = new Map(table.map((one) => [keyOf(one), one]));
    for (const [key, listener] of this.#listeners)
      if (!wanted.has(key)) {
        listener.close();
        this.#listeners.delete(key);
      }
    const errors: Record<string, string> = {};
    for (const [key, one] of wanted) {
      const present = this.#listeners.get(key);
      if (present) present.upstreams = one.upstreams;
      else
        await open(one).then(
          (listener) => this.#listeners.set(key, listener),
          (error: NodeJS.ErrnoException) => (errors[key] = error.code ?? error.message),
        );
    }
    return errors;
  }

  close(): void {
    for (const listener of this.#listeners.values()) listener.close();
    this.#listeners.clear();
  }
}

/** Returns the key of a port, such as `5432/TCP`. */
export const keyOf = ({ port, protocol }: Pick<PublishedPort, 'port' | 'protocol'>) => `${port}/${protocol}`;

const open = (one: PublishedPort) => (one.protocol === 'TCP' ? openTcp(one) : openUdp(one));

function openTcp({ port, upstreams }: PublishedPort): Promise<Listener> {
  let turn = 0;
  const server: Server = createServer({ pauseOnConnect: true }, (client) => {
    const upstream = listener.upstreams[turn++ % listener.upstreams.length];
    if (upstream) join(client, connect({ host: upstream.address, port: upstream.port }));
    else client.destroy();
  });
  const listener: Listener = { upstreams, close: () => server.close() };
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, () => resolve(listener));
  });
}

/** Connects both sides: the end or failure of one ends the other. */
function join(client: Socket, instance: Socket): void {
  instance.once('connect', () => {
    client.pipe(instance);
    instance.pipe(client);
  });
  for (const [one, other] of [
    [client, instance],
    [instance, client],
  ] as const) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroy());
  }
}

function openUdp({ port, upstreams }: PublishedPort): Promise<Listener> {
  const outer = createSocket('udp4');
  const senders = new Map<string, UdpSocket>();
  let turn = 0;
  const socketFor = (sender: RemoteInfo): UdpSocket | null => {
    const key = `${sender.address}:${sender.port}`;
    const present = senders.get(key);
    if (present) return present;
    const upstream = listener.upstreams[turn++ % listener.upstreams.length];
    if (!upstream) return null;
    const inner = openUdpSender(upstream, (answer) => outer.send(answer, sender.port, sender.address));
    inner.once('close', () => senders.delete(key));
    senders.set(key, inner);
    return inner;
  };
  outer.on('message', (packet, sender) => socketFor(sender)?.emit('forward', packet));
  const listener: Listener = {
    upstreams,
    close: () => {
      outer.close();
      for (const inner of senders.values()) inner.close();
    },
  };
  return new Promise((resolve, reject) => {
    outer.once('error', reject);
    outer.bind(port, () => resolve(listener));
  });
}

/** Opens a socket for one sender, so that answers reach it; the socket closes after idle time. */
function openUdpSender(upstream: Upstream, answer: (packet: Buffer) => void): UdpSocket {
  const inner = createSocket('udp4');
  const timer = setTimeout(() => inner.close(), UDP_IDLE_MS);
  inner.on('message', (packet) => {
    timer.refresh();
    answer(packet);
  });
  inner.on('forward', (packet: Buffer) => {
    timer.refresh();
    inner.send(packet, upstream.port, upstream.address);
  });
  // A missing instance answers with an ICMP error: the packet is lost, as without the forwarder.
  inner.on('error', () => inner.close());
  inner.once('close', () => clearTimeout(timer));
  return inner;
}
