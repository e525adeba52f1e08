import { constants } from 'node:http2';
import type { ClientHttp2Stream, IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { forwardedHeaders } from '#runtimes/proxy/headers.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';
import type { UpstreamState } from '#runtimes/proxy/upstreams.ts';

/** Status codes of gRPC. */
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

/**
 * Hands one HTTP/2 stream (a gRPC call) through to an upstream, messages and trailers in both directions as they come. Another
 * upstream is tried as long as no connection comes about.
 */
export async function forwardCall(
  table: RouteTable,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  stream.on('error', () => stream.destroy());
  const host = headers[':authority'] ?? headers.host ?? '';
  const route = table.find(host);
  if (!route) return answer(stream, headers, 404, UNIMPLEMENTED, `There is no service at ${host}.`);
  if (route.protocol !== 'GRPC')
    return answer(stream, headers, 505, UNIMPLEMENTED, `The service at ${host} is spoken to in HTTP/1.1.`);
  const tried: UpstreamState[] = [];
  for (let upstream = route.pick(tried); upstream; upstream = route.pick(tried)) {
    tried.push(upstream);
    upstream.begin();
    const call = await openCall(upstream, stream, headers, host);
    if (call) return connectStreams(stream, headers, call, upstream);
    upstream.end();
  }
  const why = tried.length === 0 ? 'is not running' : 'takes no connections';
  answer(stream, headers, tried.length === 0 ? 503 : 502, UNAVAILABLE, `The service at ${host} ${why}.`);
}

async function openCall(
  upstream: UpstreamState,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  host: string,
): Promise<ClientHttp2Stream | null> {
  try {
    const session = await upstream.session();
    const pairs = forwardedHeaders(headers, { host, proto: 'http', socket: stream.session!.socket });
    const outgoing: OutgoingHttpHeaders = {
      ':method': headers[':method'],
      ':path': headers[':path'],
      ':scheme': 'http',
      ':authority': host,
      // gRPC asks for it, and it does no harm otherwise: the trailers do come.
      te: 'trailers',
    };
    for (let at = 0; at < pairs.length; at += 2) {
      const [name, value] = [pairs[at]!, pairs[at + 1]!];
      if (name !== 'host') outgoing[name] = name in outgoing ? [outgoing[name], value].flat().map(String) : value;
    }
    return session.request(outgoing, { endStream: false });
  } catch {
    // Nothing of the call was sent.
    upstream.connectFailed();
    return null;
  }
}

function connectStreams(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  call: ClientHttp2Stream,
  upstream: UpstreamState,
): void {
  let trailers: IncomingHttpHeaders = {};
  call.on('response', (answered, flags) => {
    if (stream.destroyed) return;
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    stream.respond(answered, { endStream, waitForTrailers: !endStream });
    if (!endStream) call.pipe(stream);
    // The upstream has said everything; what the client would still say interests nobody.
    else stream.once('finish', () => stream.close());
  });
  call.on('trailers', (received) => (trailers = received));
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.pipe(call);
  stream.on('close', () => {
    if (!call.closed) call.close(stream.rstCode || constants.NGHTTP2_CANCEL);
  });
  // How it failed stands in `rstCode`, which the other side is told.
  call.on('error', () => undefined);
  call.on('close', () => {
    upstream.end();
    if (stream.closed) return;
    if (!stream.headersSent) answer(stream, headers, 502, UNAVAILABLE, 'The service ended the call without an answer.');
    else if (call.rstCode !== constants.NGHTTP2_NO_ERROR) stream.close(call.rstCode);
  });
}

/** An answer of the proxy itself: a status of gRPC for its clients, else one of HTTP. */
function answer(
  stream: ServerHttp2Stream,
  { 'content-type': type = 'application/grpc' }: IncomingHttpHeaders,
  status: number,
  grpcStatus: number,
  message: string,
): void {
  if (stream.destroyed || stream.headersSent) return;
  if (type.startsWith('application/grpc')) {
    const headers = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': grpcStatus };
    stream.respond({ ...headers, 'grpc-message': encodeURI(message) }, { endStream: true });
  } else {
    stream.respond({ ':status': status, 'content-type': 'text/plain; charset=utf-8' });
    stream.end(`${message}\n`);
  }
}
