import type {
  ClientRequest,
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeaders,
  RequestOptions,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { request as requestHttp } from '#kernel/node-http.ts';
import type { Platform } from '#platform/context.ts';
import { findApiUrl } from '#platform/machines/directory.ts';
import { OnOtherMachine } from '#platform/machines/elsewhere.ts';
import { isPassed, makePass, PASS_HEADER } from '#platform/machines/pass.ts';

/** Milliseconds for the connection to another machine, and for the beginning of its answer. */
const CONNECT_MS = 5_000;
const ANSWER_MS = 60_000;
/** Milliseconds without a byte after which an answer under way is given up. */
const SILENT_MS = 120_000;

/** Headers of one connection, which do not go on to the next one (RFC 9110, 7.6.1). */
const OF_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  PASS_HEADER,
]);

/** Fields that this server writes itself, or that belong to its own answer. */
const OWN_ANSWER = new Set([...OF_CONNECTION, 'date', 'x-request-id']);

const without = (headers: IncomingHttpHeaders, left: Set<string>): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !left.has(name)));

/** Finds the API of the machine. Throws `OnOtherMachine` where none is known, or where the request was sent on before. */
async function apiOf(platform: Platform, request: IncomingMessage, error: OnOtherMachine): Promise<URL> {
  const { machineId } = error;
  if (isPassed(platform.vault, platform.clock.now(), request))
    throw new OnOtherMachine(
      machineId,
      'the machine that answers for it does not have it either; compare the files node-id of both',
    );
  const url = await findApiUrl(platform.db, machineId);
  if (url === null) throw error;
  return new URL(url);
}

/** Opens a request to another machine with the caller's own headers: it looks at the caller's rights itself. */
function open(platform: Platform, api: URL, request: IncomingMessage, headers: OutgoingHttpHeaders): ClientRequest {
  const [method, path] = [request.method ?? 'GET', request.url ?? '/'];
  const options: RequestOptions = {
    host: api.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: api.port || (api.protocol === 'https:' ? 443 : 80),
    method,
    path,
    timeout: CONNECT_MS,
    agent: false,
    headers: {
      ...headers,
      host: api.host,
      [PASS_HEADER]: makePass(platform.vault, platform.clock.now(), method, path),
    },
  };
  const sent = (api.protocol === 'https:' ? requestHttps : requestHttp)(options);
  sent.once('socket', (socket) =>
    socket.once(api.protocol === 'https:' ? 'secureConnect' : 'connect', () => sent.setTimeout(ANSWER_MS)),
  );
  sent.once('timeout', () => sent.destroy(new Error('it did not answer in time')));
  return sent;
}

/** Waits for an event of a request to another machine. Throws `OnOtherMachine` where there is no answer. */
function answerOf<T extends unknown[]>(sent: ClientRequest, machineId: string, ...events: string[]): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  for (const event of events) sent.once(event, (...args: T) => resolve(args));
  // Stays: a connection that breaks behind the answer is told by the answer itself.
  sent.on('error', (cause) => reject(new OnOtherMachine(machineId, `its API does not answer (${cause.message})`)));
  return promise;
}

/** Sends a request on to the machine that can answer it, and answers what it answers. */
export async function sendOn(
  platform: Platform,
  error: OnOtherMachine,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { raw } = request;
  const api = await apiOf(platform, raw, error);
  const body = request.body as string | Buffer | undefined;
  const headers = without(raw.headers, OF_CONNECTION);
  const sent = open(platform, api, raw, { ...headers, 'content-length': body ? Buffer.byteLength(body) : 0 });
  const leave = () => sent.destroy();
  reply.raw.once('close', leave);
  sent.end(body);
  const [answer] = await answerOf<[IncomingMessage]>(sent, error.machineId, 'response');
  answer.setTimeout(SILENT_MS, leave);
  return reply
    .code(answer.statusCode ?? 502)
    .headers(without(answer.headers, OWN_ANSWER))
    .send(answer);
}

/** Sends the opening of a web socket on to the machine that can serve it, and carries data both ways. */
export async function sendSocketOn(
  platform: Platform,
  error: OnOtherMachine,
  { request, stream, head }: { request: IncomingMessage; stream: Duplex; head: Buffer },
): Promise<number> {
  const api = await apiOf(platform, request, error);
  const headers = { ...without(request.headers, OF_CONNECTION), connection: 'Upgrade', upgrade: 'websocket' };
  const sent = open(platform, api, request, headers);
  stream.once('close', () => sent.destroy());
  sent.end();
  const [answer, socket, first] = await answerOf<[IncomingMessage, Socket?, Buffer?]>(
    sent,
    error.machineId,
    'upgrade',
    'response',
  );
  stream.write(headOf(answer));
  if (!socket) {
    answer.pipe(stream);
    return answer.statusCode ?? 502;
  }
  const end = () => {
    socket.destroy();
    stream.destroy();
  };
  for (const one of [socket, stream]) one.once('error', end).once('close', end);
  // Pings of the serving machine tell whether the connection lives.
  socket.setTimeout(0);
  socket.write(head);
  stream.write(first ?? Buffer.alloc(0));
  socket.pipe(stream);
  stream.pipe(socket);
  return 101;
}

/** Head of an answer as it goes over the wire; what is not upgraded ends with the connection. */
function headOf(answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`];
  const isUpgraded = answer.statusCode === 101;
  for (let at = 0; at < answer.rawHeaders.length; at += 2) {
    const [name, value] = answer.rawHeaders.slice(at, at + 2) as [string, string];
    if (isUpgraded || !OF_CONNECTION.has(name.toLowerCase())) lines.push(`${name}: ${value}`);
  }
  if (!isUpgraded) lines.push('Connection: close');
  return `${lines.join('\r\n')}\r\n\r\n`;
}
