import { constants } from 'node:http2';
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
  ServerHttp2Stream,
  ServerStreamResponseOptions,
} from 'node:http2';
import { answerFields, fieldMap, requestFields, trailerFields } from '#runtimes/proxy/builtin/headers.ts';
import type { HostRoute, RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import { countRequest, VISITOR_LEFT } from '#runtimes/proxy/requests.ts';
import type { UpstreamState } from '#runtimes/proxy/builtin/upstreams.ts';
import type { Visit } from '#runtimes/proxy/builtin/visits.ts';

/** Status codes of gRPC. */
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
/** Milliseconds for which a visitor may continue a call whose answer is complete. */
const ANSWERED_MS = 2_000;

/** Call of a visitor: one stream of HTTP/2. */
export interface Call {
  stream: ServerHttp2Stream;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  visit: Visit;
}

/**
 * Forwards one HTTP/2 stream (a gRPC call) to an upstream, messages and trailers in both directions as they come. Other upstreams are tried
 * until a connection is established.
 */
export async function forwardCall(table: RouteTable, call: Call): Promise<void> {
  const { headers } = call;
  const host = headers[':authority'] ?? headers.host ?? '';
  const route = table.find(host);
  if (!route) return answer(call, 404, UNIMPLEMENTED, `There is no service at ${host}.`);
  if (route.protocol !== 'GRPC')
    return answer(call, 505, UNIMPLEMENTED, `The service at ${host} is spoken to in HTTP/1.1.`);
  countAtEnd(call, route);
  const tried: UpstreamState[] = [];
  for (let upstream = route.pick(tried); upstream; upstream = route.pick(tried)) {
    tried.push(upstream);
    upstream.begin();
    const session = await connectTo(upstream);
    // The call was cancelled meanwhile: its event `close` does not come again.
    const isOver = call.stream.closed || call.stream.destroyed;
    const onward = session && !isOver ? openCall(session, upstream, call, host) : null;
    if (onward) return connectStreams(call, onward, upstream);
    upstream.end();
    if (isOver) return;
  }
  const why = tried.length === 0 ? 'is not running' : 'takes no connections';
  answer(call, tried.length === 0 ? 503 : 502, UNAVAILABLE, `The service at ${host} ${why}.`);
}

/** Counts a call once it is over, by its status of HTTP: that of gRPC is a trailer of an answer with 200. */
function countAtEnd({ stream }: Call, { requests }: HostRoute): void {
  const startedAt = performance.now();
  stream.once('close', () => {
    const status = stream.headersSent ? Number(stream.sentHeaders[':status']) : VISITOR_LEFT;
    countRequest(requests, status, performance.now() - startedAt);
  });
}

/** Connects to an upstream; returns null on failure. */
async function connectTo(upstream: UpstreamState): Promise<ClientHttp2Session | null> {
  try {
    return await upstream.session();
  } catch {
    upstream.connectFailed();
    return null;
  }
}

/** Sends a call on; returns null if nothing of it was sent. */
function openCall(
  session: ClientHttp2Session,
  upstream: UpstreamState,
  { headers, rawHeaders, visit }: Call,
  host: string,
): ClientHttp2Stream | null {
  const { address: peer, socket, trusted } = visit;
  const fields = requestFields(rawHeaders, { host, peer, port: socket.localPort ?? 0, trusted });
  const outgoing: OutgoingHttpHeaders = {
    ':method': headers[':method'],
    ':path': headers[':path'],
    ':scheme': 'http',
    ':authority': host,
    // gRPC requires the field, and it is harmless otherwise, as trailers do follow.
    te: 'trailers',
    ...fieldMap(fields),
  };
  try {
    return session.request(outgoing, { endStream: false });
  } catch {
    upstream.connectFailed();
    return null;
  }
}

function connectStreams(call: Call, onward: ClientHttp2Stream, upstream: UpstreamState): void {
  const { stream } = call;
  let trailers: OutgoingHttpHeaders = {};
  onward.on('response', (answered, flags, raw: string[]) => {
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const isOpen = attempt(call, onward, () => {
      respond(call, answerHead(answered, raw), { endStream, waitForTrailers: !endStream });
    });
    if (isOpen && !endStream) onward.pipe(stream);
  });
  onward.on('trailers', (_received, _flags, raw: string[]) => (trailers = fieldMap(trailerFields(raw))));
  stream.on('wantTrailers', () => attempt(call, onward, () => stream.sendTrailers(trailers)));
  stream.pipe(onward);
  stream.on('close', () => {
    if (!onward.closed) onward.close(stream.rstCode || constants.NGHTTP2_CANCEL);
  });
  // `rstCode` has the reason of the failure and is passed to the other side.
  onward.on('error', () => undefined);
  onward.on('close', () => {
    upstream.end();
    if (stream.closed || stream.destroyed) return;
    if (!stream.headersSent) answer(call, 502, UNAVAILABLE, 'The service ended the call without an answer.');
    else if (onward.rstCode !== constants.NGHTTP2_NO_ERROR) stream.close(onward.rstCode);
  });
}

/** Begins the answer to a visitor, and ends the call after the complete answer. */
function respond({ stream, headers }: Call, head: OutgoingHttpHeaders, options: ServerStreamResponseOptions): void {
  stream.respond(head, options);
  // The writing side of a HEAD request has ended before its answer begins.
  if (options.endStream || headers[':method'] === 'HEAD') closeSoon(stream);
  else stream.once('finish', () => closeSoon(stream));
}

/**
 * Closes a call some time after its answer is complete: further data of the visitor is ignored, and a visitor that never ends its side
 * would keep its connection for ever. Closing at once would cut off trailers, which follow the end of the body.
 */
function closeSoon(stream: ServerHttp2Stream): void {
  const timer = setTimeout(() => stream.close(), ANSWERED_MS).unref();
  stream.once('close', () => clearTimeout(timer));
}

function answerHead(answered: IncomingHttpHeaders, raw: string[]): OutgoingHttpHeaders {
  const fields: string[] = [];
  const kept = answerFields(raw);
  for (let at = 0; at < kept.length; at += 2) if (!kept[at]!.startsWith(':')) fields.push(kept[at]!, kept[at + 1]!);
  return { ...fieldMap(fields), ':status': answered[':status'] };
}

/** Sends content of the upstream to the visitor; content that HTTP/2 does not allow ends the call. */
function attempt({ stream }: Call, onward: ClientHttp2Stream, say: () => void): boolean {
  if (stream.destroyed || stream.closed) return false;
  try {
    say();
    return true;
  } catch {
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    onward.close(constants.NGHTTP2_PROTOCOL_ERROR);
    return false;
  }
}

/** Sends an answer of the proxy itself: a status of gRPC for its clients, else one of HTTP. */
function answer(call: Call, status: number, grpcStatus: number, message: string): void {
  const {
    stream,
    headers: { 'content-type': type = 'application/grpc' },
  } = call;
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  if (type.startsWith('application/grpc')) {
    const headers = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': grpcStatus };
    const told = encodeURI(message.toWellFormed());
    respond(call, { ...headers, 'grpc-message': told }, { endStream: true });
  } else {
    respond(call, { ':status': status, 'content-type': 'text/plain; charset=utf-8' }, {});
    stream.end(`${message}\n`);
  }
}
