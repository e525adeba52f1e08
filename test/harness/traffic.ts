import { Agent, request, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent as Dispatcher, WebSocket, type CloseEvent } from 'undici';

/** Kinds of client traffic while a release is replaced. */
export type TrafficKind =
  /** Sequential requests on a connection that is kept. */
  | 'kept'
  /** New connection for each request. */
  | 'fresh'
  /** Slow answers that take most of a second, so that some are under way at any change. */
  | 'slow'
  /** Upload of bodies piece by piece. */
  | 'upload';

/** Number of concurrent lines of each kind. */
const USUAL_LINES: Record<TrafficKind, number> = { kept: 6, fresh: 2, slow: 4, upload: 4 };

export interface TrafficReport {
  sent: number;
  /** Number of answers with status 200 and a whole body, by release. */
  answered: Record<string, number>;
  /** Number of processes of each release that answered. */
  processes: Record<string, number>;
  /** Failed requests: kind, milliseconds since the beginning, and reason. */
  failures: string[];
}

/** Address of the application of `trafficApplication`. */
export interface TrafficTarget {
  port: number;
  host: string;
}

const SLOW_MS = 700;
const PIECES = 8;
const PIECE = 'x'.repeat(1000);
const PIECE_EVERY_MS = 60;

/** Sends requests on several lines at once. Every request counts: none is repeated. */
export class Traffic implements AsyncDisposable {
  readonly #target: TrafficTarget;
  readonly #started = performance.now();
  readonly #report: TrafficReport = { sent: 0, answered: {}, processes: {}, failures: [] };
  readonly #seen = new Set<string>();
  readonly #lines: Promise<unknown>;
  #running = true;
  #waiters: (() => void)[] = [];

  constructor(target: TrafficTarget, lines: Partial<Record<TrafficKind, number>> = USUAL_LINES) {
    this.#target = target;
    const kinds = Object.entries(lines) as [TrafficKind, number][];
    this.#lines = Promise.all(kinds.flatMap(([kind, count]) => Array.from({ length: count }, () => this.#line(kind))));
  }

  /** Resolves when `count` more requests were answered by a release. */
  async answeredBy(release: string, count = 20): Promise<void> {
    const wanted = (this.#report.answered[release] ?? 0) + count;
    const end = performance.now() + 30_000;
    while ((this.#report.answered[release] ?? 0) < wanted) {
      if (performance.now() > end) throw new Error(`${release} does not answer: ${JSON.stringify(this.#report)}`);
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** Lets pending requests end and returns the report. */
  async stop(): Promise<TrafficReport> {
    this.#running = false;
    await this.#lines;
    return this.#report;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #line(kind: TrafficKind): Promise<void> {
    const agent = kind === 'fresh' ? undefined : new Agent({ keepAlive: true, maxSockets: 1 });
    while (this.#running) {
      this.#report.sent++;
      const at = Math.round(performance.now() - this.#started);
      try {
        const release = await this.#send(kind, agent);
        this.#report.answered[release] = (this.#report.answered[release] ?? 0) + 1;
      } catch (error) {
        this.#report.failures.push(`${kind} at ${at} ms: ${(error as Error).message}`);
      }
      for (const resolve of this.#waiters.splice(0)) resolve();
      // Without a pause, a line would take the whole processor from the tested program.
      await sleep(kind === 'kept' ? Math.random() * 8 : 10);
    }
    agent?.destroy();
  }

  async #send(kind: TrafficKind, agent: Agent | undefined): Promise<string> {
    const path = kind === 'slow' ? `/slow?ms=${SLOW_MS}` : '/';
    const method = kind === 'upload' ? 'POST' : 'GET';
    const { port, host } = this.#target;
    const sent = request({ port, host: '127.0.0.1', path, method, agent: agent ?? false, headers: { host } });
    // The first error is that of `answered`; a body that is still being sent may cause more.
    sent.on('error', () => undefined);
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    if (kind === 'upload') await Promise.race([sendPieces(sent), answered]);
    sent.end();
    const [response] = await answered;
    const body = await text(response);
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${body.trim()}`);
    const { release, instance, bytes } = JSON.parse(body) as { release: string; instance: string; bytes: number };
    if (kind === 'upload' && bytes !== PIECES * PIECE.length) throw new Error(`${bytes} bytes of the body arrived`);
    if (!this.#seen.has(instance)) {
      this.#seen.add(instance);
      this.#report.processes[release] = (this.#report.processes[release] ?? 0) + 1;
    }
    return release;
  }
}

async function sendPieces(sent: ReturnType<typeof request>): Promise<void> {
  for (let n = 0; n < PIECES; n++) {
    sent.write(PIECE);
    await sleep(PIECE_EVERY_MS);
  }
}

/**
 * Returns the text of a CommonJS program that answers the traffic and listens on PORT. The program is careless: on SIGTERM it closes its
 * websockets and ends, whatever requests it has under way. No client may have sent it any by then.
 */
export const trafficApplication = (release: string): string => `
const { createServer } = require('node:http');
const { createHash, randomUUID } = require('node:crypto');
const instance = randomUUID();
const release = ${JSON.stringify(release)};
const sockets = new Set();
const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://x');
  let bytes = 0;
  request.on('data', (piece) => (bytes += piece.length));
  request.on('end', () => {
    const answer = () => response.end(JSON.stringify({ release, instance, bytes }));
    const ms = Number(url.searchParams.get('ms') ?? 0);
    if (ms > 0) setTimeout(answer, ms);
    else answer();
  });
});
server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1')
    .update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n' +
    'Sec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n');
  sockets.add(socket);
  socket.on('error', () => socket.destroy());
  socket.on('close', () => sockets.delete(socket));
  socket.on('data', (frame) => {
    if ((frame[0] & 0x0f) !== 1) return socket.end();
    const reply = Buffer.from(release);
    socket.write(Buffer.concat([Buffer.from([0x81, reply.length]), reply]));
  });
});
process.on('SIGTERM', () => {
  // 1001: going away.
  for (const socket of sockets) socket.write(Buffer.from([0x88, 2, 0x03, 0xe9]));
  setTimeout(() => process.exit(0), 20);
});
server.listen(Number(process.env.PORT ?? 8080), () => console.log('listening'));
`;

/** Sends every request to this machine: not every machine resolves names below localhost. */
const TO_THIS_MACHINE = new Dispatcher({
  connect: { lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]) },
});

/** Websocket to the application that asks it for its release again and again. */
export class Conversation implements AsyncDisposable {
  readonly #socket: WebSocket;
  /** Code of the close frame, 1006 without one, and its time; undefined while the socket is open. */
  closed: { code: number; afterMs: number } | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    const opened = performance.now();
    socket.addEventListener('close', ({ code }) => (this.closed = { code, afterMs: performance.now() - opened }));
  }

  static async open({ port, host }: TrafficTarget): Promise<Conversation> {
    const socket = new WebSocket(`ws://${host}:${port}/`, { dispatcher: TO_THIS_MACHINE });
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => resolve());
      socket.addEventListener('error', () => reject(new Error(`no websocket to ${host}:${port}`)));
    });
    return new Conversation(socket);
  }

  /** Returns the release at the other end. */
  async ask(): Promise<string> {
    if (this.closed) throw new Error(`the websocket was closed with ${this.closed.code}`);
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const onClose = ({ code }: CloseEvent) => reject(new Error(`the websocket was closed with ${code}`));
    this.#socket.addEventListener('message', ({ data }) => resolve(String(data)), { once: true });
    this.#socket.addEventListener('close', onClose, { once: true });
    this.#socket.send('who?');
    return promise.finally(() => this.#socket.removeEventListener('close', onClose));
  }

  /** Waits for the end of the socket and returns its close code. */
  async end(): Promise<number> {
    if (!this.closed) await once(this.#socket, 'close');
    return this.closed!.code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.closed) return;
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}
