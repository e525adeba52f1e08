import { lookup } from 'node:dns/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { isForbiddenAddress, literalAddress } from '#kernel/addresses.ts';
import { endToEnd } from '#kernel/hop-by-hop.ts';
import { createServer, request as requestHttp } from '#kernel/node-http.ts';
import { ruleFor, targetOf, type Target } from '#runtimes/tools/egress/rules.ts';
import type { Egress } from '#runtimes/runtime.ts';

export interface EgressProxyOptions extends Egress {
  /** Writes a line for people to the log. */
  log(line: string): void;
  /** Returns the addresses of a name; the system's resolver if absent. */
  resolve?(host: string): Promise<string[]>;
}

/** Number of distinct targets whose refusal is logged: a program may try any number of them. */
const TOLD = 200;
const CONNECT_MS = 30_000;
const MOST_CONNECTIONS = 1000;

/**
 * Creates a forward proxy (CONNECT, and absolute-form for plain HTTP) to listed hosts only. It resolves names itself and connects to the
 * very address that it checked: a name cannot change in between (docs/decisions/0019).
 */
export function createEgressProxy(options: EgressProxyOptions): Server {
  const gate = new Gate(options);
  const server = createServer((request, response) => void forward(gate, request, response));
  server.maxConnections = MOST_CONNECTIONS;
  // Tunnels and slow answers have no time limit.
  server.requestTimeout = 0;
  server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on('error', () => client.destroy());
    void tunnel(gate, request.url ?? '', client, head);
  });
  return server;
}

/** Refusal to connect to a target. */
class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Opens connections to listed targets, and logs refused ones. */
class Gate {
  readonly #options: EgressProxyOptions;
  readonly #told = new Set<string>();

  constructor(options: EgressProxyOptions) {
    this.#options = options;
  }

  /** Opens a connection to the target. Throws Refusal. */
  async open(target: Target | null): Promise<Socket> {
    if (!target) throw new Refusal(400, 'This is a forward proxy: ask for host:port or for an absolute http URL.');
    const addresses = await this.#addressesOf(target);
    return connectTo(addresses[0]!, target);
  }

  async #addressesOf(target: Target): Promise<string[]> {
    const { rules, allowedPrivateAddresses } = this.#options;
    const rule = ruleFor(rules, target);
    if (!rule) throw this.#refusal(target, 'is not among the hosts that may be reached');
    const literal = literalAddress(target.host);
    const found = literal === undefined ? await this.#resolve(target.host) : [literal];
    const allowed = rule.isPrivate ? ['0.0.0.0/0', '::/0'] : allowedPrivateAddresses;
    const good = found.filter((address) => !isForbiddenAddress(address, allowed));
    // The message omits the address: users of an agent read it, and must not learn the addresses of private names.
    const leads = literal === undefined ? 'leads to' : 'is';
    if (good.length === 0) throw this.#refusal(target, `${leads} a private, local or reserved address`);
    return good;
  }

  async #resolve(host: string): Promise<string[]> {
    try {
      const found = this.#options.resolve
        ? await this.#options.resolve(host)
        : (await lookup(host, { all: true })).map(({ address }) => address);
      if (found.length > 0) return found;
    } catch {
      // The error below covers every reason of the resolver.
    }
    throw new Refusal(502, `The name ${host} does not resolve.`);
  }

  #refusal({ host, port }: Target, why: string): Refusal {
    const text = `${host}:${port} ${why}`;
    if (!this.#told.has(text) && this.#told.size < TOLD) {
      this.#told.add(text);
      this.#options.log(`Refused a connection: ${text}.`);
      if (this.#told.size === TOLD) this.#options.log('What else is refused is not told any more.');
    }
    return new Refusal(403, `${text}.`);
  }
}

function connectTo(address: string, { host, port }: Target): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, timeout: CONNECT_MS });
    const fail = (reason: string) => {
      socket.destroy();
      reject(new Refusal(502, `${host}:${port} cannot be reached: ${reason}.`));
    };
    socket.once('timeout', () => fail('it does not answer'));
    socket.once('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
    socket.once('connect', () => {
      socket.setTimeout(0);
      socket.removeAllListeners();
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
  });
}

async function tunnel(gate: Gate, authority: string, client: Duplex, head: Buffer): Promise<void> {
  try {
    const server = await gate.open(targetOf(authority, null));
    if (client.destroyed) return void server.destroy();
    client.once('close', () => server.destroy());
    server.once('close', () => client.destroy());
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    server.write(head);
    server.pipe(client).pipe(server);
  } catch (error) {
    const { status, message } = asRefusal(error);
    const length = Buffer.byteLength(message) + 1;
    client.end(
      `HTTP/1.1 ${status} Refused\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${message}\n`,
    );
  }
}

const asRefusal = (error: unknown): Refusal =>
  error instanceof Refusal ? error : new Refusal(502, (error as Error).message);

async function forward(gate: Gate, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = URL.canParse(request.url ?? '') ? new URL(request.url!) : null;
  request.on('error', () => response.destroy());
  try {
    const socket = await gate.open(url?.protocol === 'http:' ? targetOf(url.host, 80) : null);
    if (response.destroyed) return void socket.destroy();
    pass(request, response, url!, socket);
  } catch (error) {
    const { status, message } = asRefusal(error);
    response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(`${message}\n`);
  }
}

/** Forwards one request on its own connection, which ends with the answer. */
function pass(request: IncomingMessage, response: ServerResponse, url: URL, socket: Socket): void {
  const fail = () => {
    socket.destroy();
    if (response.headersSent) response.destroy();
    else response.writeHead(502, { connection: 'close' }).end();
  };
  const outgoing = requestHttp({
    createConnection: () => socket,
    method: request.method,
    path: `${url.pathname}${url.search}`,
    headers: { ...endToEnd(request.headers), host: url.host, connection: 'close' },
    setHost: false,
  });
  response.once('close', () => outgoing.destroy());
  outgoing.once('error', fail);
  outgoing.once('response', (answer) => {
    answer.once('error', fail);
    response.writeHead(answer.statusCode!, endToEnd(answer.headers));
    answer.pipe(response);
  });
  request.pipe(outgoing);
}
