import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import { Readable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { endToEnd } from '#kernel/hop-by-hop.ts';
import { request as requestHttp } from '#kernel/node-http.ts';
import type { Platform } from '#platform/context.ts';
import { endBlock } from '#platform/http/server-sent-events.ts';
import { closingError, cutOnClose, cutStalled } from '#platform/http/stream.ts';
import { outgoingError } from '#platform/http-client/errors.ts';
import { findApiUrl } from '#platform/machines/directory.ts';
import { OnOtherMachine } from '#platform/machines/elsewhere.ts';
import { isPassed, makePass, PASS_HEADER } from '#platform/machines/pass.ts';

/** Milliseconds for the connection to another machine. */
const CONNECT_MS = 5_000;
/** Milliseconds for the beginning of an answer: more than any handler waits for a runtime or a server. */
const ANSWER_MS = 90_000;
/** Milliseconds without a byte after which an answer under way is given up. */
const SILENT_MS = 120_000;

/** Fields that the client of the other machine writes itself. */
const OWN = ['content-length', 'expect', 'transfer-encoding'];

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

/**
 * Opens a request to another machine with the caller's own headers: it looks at the caller's rights itself. The request ends with `signal` and
 * with its deadlines.
 */
function open(
  platform: Platform,
  api: URL,
  request: IncomingMessage,
  signal: AbortSignal,
  more: OutgoingHttpHeaders = {},
): ClientRequest {
  const [method, path] = [request.method ?? 'GET', request.url ?? '/'];
  const isTls = api.protocol === 'https:';
  const options: RequestOptions = {
    host: api.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: api.port || (isTls ? 443 : 80),
    method,
    path,
    timeout: CONNECT_MS,
    agent: false,
    signal,
    headers: {
      ...endToEnd(request.headers, OWN),
      ...more,
      host: api.host,
      [PASS_HEADER]: makePass(platform.vault, platform.clock.now(), method, path),
    },
  };
  const sent = (isTls ? requestHttps : requestHttp)(options);
  sent.once('socket', (socket) => socket.once(isTls ? 'secureConnect' : 'connect', () => sent.setTimeout(ANSWER_MS)));
  sent.once('timeout', () => sent.destroy(new Error('it did not answer in time')));
  return sent;
}

/** Waits for an event of a request to another machine. Throws `OnOtherMachine`, which says why, where there is no answer. */
function answerOf<T extends unknown[]>(sent: ClientRequest, machineId: string, ...events: string[]): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  for (const event of events) sent.once(event, (...args: T) => resolve(args));
  // Stays: a connection that breaks behind the answer is told by the answer itself.
  sent.on('error', (cause) => {
    const { message } = outgoingError(cause, String(sent.getHeader('host')));
    reject(new OnOtherMachine(machineId, message.replace(/\.$/, '')));
  });
  return promise;
}

/** Circumstances of an answer that goes on: a followed log, or any other stream of events. */
export interface Carrying {
  /** Aborted when the client leaves. */
  gone: AbortSignal;
  /** Aborted when this server closes. */
  closing: AbortSignal;
  /** Counts the open connection of the caller. Rejects with 429 where there are too many. */
  onStream(): Promise<void>;
}

/** Sends a request on to the machine that can answer it, and answers what it answers. */
export async function sendOn(
  platform: Platform,
  error: OnOtherMachine,
  request: FastifyRequest,
  reply: FastifyReply,
  { gone, closing, onStream }: Carrying,
): Promise<FastifyReply> {
  const api = await apiOf(platform, request.raw, error);
  const sent = open(platform, api, request.raw, gone);
  sent.end(request.body as string | Buffer | undefined);
  const [answer] = await answerOf<[IncomingMessage]>(sent, error.machineId, 'response');
  sent.setTimeout(SILENT_MS);
  const { 'x-request-id': answeredAs } = answer.headers;
  request.log.info({ machineId: error.machineId, answeredAs }, 'request sent on to another machine');
  reply.code(answer.statusCode ?? 502).headers(endToEnd(answer.headers, ['transfer-encoding']));
  if (!answer.headers['content-type']?.startsWith('text/event-stream')) return reply.send(answer);
  await onStream().catch((refusal: unknown) => {
    answer.destroy();
    throw refusal;
  });
  const events = cutStalled(wholeEvents(answer, error.machineId, gone, closing), () => stream.destroy());
  const stream = Readable.from(events, { objectMode: false });
  cutOnClose(stream, closing);
  return reply.header('connection', 'close').send(stream);
}

/** Bytes of one event that are held until it is whole; a longer one is passed on as it comes. */
const EVENT_BYTES = 1024 * 1024;
const EVENT_END = Buffer.from('\n\n');

/** Yields whole events of another machine, so that a last one can say why no more come. */
async function* wholeEvents(
  answer: IncomingMessage,
  machineId: string,
  gone: AbortSignal,
  closing: AbortSignal,
): AsyncGenerator<Buffer | string> {
  let rest: Buffer = Buffer.alloc(0);
  /** True within an event that is passed on as it comes. */
  let isInside = false;
  const last = (block: string) => (isInside ? `\n\n${block}` : block);
  const stop = () => answer.destroy();
  closing.addEventListener('abort', stop, { once: true });
  if (closing.aborted) stop();
  try {
    for await (const part of answer as AsyncIterable<Buffer>) {
      const text = Buffer.concat([rest, part]);
      const end = text.lastIndexOf(EVENT_END);
      const isTooLong = end < 0 && text.length > EVENT_BYTES;
      // The last byte may be the first of the two that end the event.
      const whole = isTooLong ? text.length - 1 : end < 0 ? 0 : end + EVENT_END.length;
      rest = text.subarray(whole);
      if (whole === 0) continue;
      isInside = isTooLong;
      yield text.subarray(0, whole);
    }
    if (!closing.aborted) return;
  } catch (cause) {
    if (gone.aborted) return;
    if (!closing.aborted) {
      const broken = new OnOtherMachine(machineId, `the connection broke: ${(cause as Error).message}`);
      return yield last(endBlock(502, broken.message));
    }
  } finally {
    closing.removeEventListener('abort', stop);
  }
  yield last(endBlock(503, closingError().message));
}

/** Opening of a web socket; `signal` ends when its client leaves or the server closes. */
export interface SocketOpening {
  request: IncomingMessage;
  stream: Duplex;
  head: Buffer;
  signal: AbortSignal;
}

/**
 * Sends the opening of a web socket on to the machine that can serve it. Then carries data both ways until one side ends. Calls `answered` with
 * the status of the answer. Rejects only before there is one.
 */
export async function sendSocketOn(
  platform: Platform,
  error: OnOtherMachine,
  { request, stream, head, signal }: SocketOpening,
  answered: (status: number) => void,
): Promise<void> {
  const api = await apiOf(platform, request, error);
  const sent = open(platform, api, request, signal, { connection: 'Upgrade', upgrade: 'websocket' });
  sent.end();
  const [answer, socket, first] = await answerOf<[IncomingMessage, Socket?, Buffer?]>(
    sent,
    error.machineId,
    'upgrade',
    'response',
  );
  answered(answer.statusCode ?? 502);
  stream.write(headOf(answer));
  if (socket) {
    // Pings of the serving machine tell whether the connection lives.
    socket.setTimeout(0);
    socket.write(head);
    stream.write(first ?? Buffer.alloc(0));
    stream.pipe(socket);
  }
  // Web sockets have no halves: the end of the serving machine's data is the end, and it answers that of its client.
  await pipeline(socket ?? answer, stream, { signal }).catch(() => undefined);
  socket?.on('error', () => undefined).destroy();
  stream.destroy();
}

/** Head of an answer as it goes over the wire; what is not upgraded ends with the connection. */
function headOf(answer: IncomingMessage): string {
  const isUpgraded = answer.statusCode === 101;
  const headers = isUpgraded
    ? answer.headers
    : { ...endToEnd(answer.headers, ['transfer-encoding']), connection: 'close' };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => `${name}: ${one}`),
  );
  return [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`, ...lines, '\r\n'].join('\r\n');
}
