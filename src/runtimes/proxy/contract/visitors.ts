import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Sends a request; resolves with the head of the response. */
export async function open(
  port: number,
  host: string,
  options: RequestOptions & { body?: string } = {},
): Promise<IncomingMessage> {
  const { body, ...others } = options;
  const headers = { host, ...(others.headers as Record<string, string> | undefined) };
  const sent = request({ port, host: '127.0.0.1', agent: false, ...others, headers });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

export async function fetchFrom(port: number, host: string, options: Parameters<typeof open>[2] = {}): Promise<Answer> {
  const response = await open(port, host, options);
  return { status: response.statusCode!, headers: response.headers, body: await text(response) };
}

/** Fetches like a browser: a request that was cut off on a reused connection is sent again. */
export const fetchAgain: typeof fetchFrom = async (port, host, options = {}) => {
  for (let attempt = 1; ; attempt++) {
    const { body, ...others } = options;
    const headers = { host, ...(others.headers as Record<string, string> | undefined) };
    const sent = request({ port, host: '127.0.0.1', agent: false, ...others, headers });
    sent.end(body);
    try {
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      return { status: response.statusCode!, headers: response.headers, body: await text(response) };
    } catch (error) {
      if (!sent.reusedSocket || attempt > 20) throw error;
    }
  }
};

/** Connection of a visitor that writes and reads bytes. */
export interface RawVisitor extends AsyncDisposable {
  socket: Socket;
  /** Received bytes so far, as latin1. */
  readonly said: string;
  /** Resolves when the received text satisfies the condition, or the connection closed; rejects after `timeoutMs`. */
  until(condition: (said: string) => boolean, timeoutMs?: number): Promise<string>;
  /** Like `until`, but also resolves when nothing has come for 2 s. */
  quiet(condition: (said: string) => boolean): Promise<string>;
  /** Resolves when the proxy closed the connection; rejects after `timeoutMs`. */
  closed(timeoutMs?: number): Promise<string>;
}

/** Milliseconds of silence after which a proxy is waiting for more input. */
const QUIET_MS = 2_000;

export async function connectRaw(port: number, localAddress?: string): Promise<RawVisitor> {
  const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: false, noDelay: true });
  let said = '';
  let isClosed = false;
  let changed = Promise.withResolvers<void>();
  const change = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  socket.setEncoding('latin1').on('data', (part: string) => {
    said += part;
    change();
  });
  // Only the bytes before the error count.
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    isClosed = true;
    change();
  });
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  const until = async (condition: (said: string) => boolean, timeoutMs = 10_000): Promise<string> => {
    const signal = AbortSignal.timeout(timeoutMs);
    const late = once(signal, 'abort').then(() => {
      throw new Error(`Within ${timeoutMs} ms there came only ${JSON.stringify(said.slice(0, 2000))}`);
    });
    late.catch(() => undefined);
    while (!condition(said) && !isClosed) await Promise.race([changed.promise, late]);
    return said;
  };
  return {
    socket,
    get said() {
      return said;
    },
    until,
    quiet: async (condition) => {
      for (let before = -1; !condition(said) && !isClosed && before !== said.length;) {
        before = said.length;
        await Promise.race([changed.promise, new Promise((resolve) => setTimeout(resolve, QUIET_MS))]);
      }
      return said;
    },
    closed: async (timeoutMs) => {
      await until(() => isClosed, timeoutMs);
      return said;
    },
    [Symbol.asyncDispose]: async () => void socket.destroy(),
  };
}

/** Counts the answers that have begun in a received text; interim ones (1xx) do not count. */
export const countAnswers = (said: string): number => [...said.matchAll(/HTTP\/1\.[01] [2-9]\d\d/g)].length;

/** Sends each piece as a packet on one connection. Reads until that many answers have begun or the connection closed. */
export async function converse(port: number, pieces: string[], answers: number): Promise<string> {
  await using visitor = await connectRaw(port);
  for (const piece of pieces) {
    visitor.socket.write(piece, 'latin1');
    // The pause forces separate packets: writes in one turn of the event loop may go out together.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await visitor.until((said) => countAnswers(said) >= answers);
  // Surplus answers would arrive now.
  await new Promise((resolve) => setTimeout(resolve, 20));
  return visitor.said;
}

/** HTTP/2 session to the proxy, without TLS. */
export function openHttp2(port: number): ClientHttp2Session & AsyncDisposable {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  return Object.assign(session, {
    [Symbol.asyncDispose]: async () => {
      session.destroy();
    },
  });
}

export function call(
  session: ClientHttp2Session,
  host: string,
  path = '/echo',
  headers: Record<string, string> = {},
): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    ':authority': host,
    'content-type': 'application/grpc',
    ...headers,
  });
  stream.on('error', () => undefined);
  return stream;
}

export async function headersOf(stream: ClientHttp2Stream): Promise<IncomingHttpHeaders> {
  const [headers] = await once(stream, 'response');
  return headers as IncomingHttpHeaders;
}
