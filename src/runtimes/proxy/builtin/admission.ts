import type { IncomingMessage } from 'node:http';
import { valuesOf } from '#runtimes/proxy/builtin/headers.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** Reason why a request is not passed on. */
export interface Refusal {
  status: number;
  message: string;
}

const HOST = /^(?:[a-z0-9._~!$&'()*+,;=%<>-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;
const WEBSOCKET = /^websocket$/i;

/** Returns whether a body follows the head of a request. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '');

export const asksForWebSocket = (request: IncomingMessage): boolean => WEBSOCKET.test(request.headers.upgrade ?? '');

/**
 * Checks for requests that Node's parser accepts and upstreams might interpret differently. Returns null if the request may be passed on. A
 * refused request ends its connection, because the following bytes may be a part of it.
 */
export function refusalOf(request: IncomingMessage, { headLines }: Pick<ProxyLimits, 'headLines'>): Refusal | null {
  const { rawHeaders, httpVersion, url = '' } = request;
  const lines = rawHeaders.length / 2;
  if (lines > headLines)
    return { status: 431, message: `The head has ${lines} lines; at most ${headLines} are taken.` };
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return { status: 505, message: `HTTP/${httpVersion} is not spoken here: use HTTP/1.1.` };
  const hosts = valuesOf(rawHeaders, 'host');
  if (hosts.length !== 1 || !HOST.test(hosts[0]!))
    return { status: 400, message: 'A request has one Host header with a host name, and a port if need be.' };
  const encodings = valuesOf(rawHeaders, 'transfer-encoding');
  if (encodings.length > 0 && httpVersion === '1.0')
    return { status: 400, message: 'HTTP/1.0 has no Transfer-Encoding: send a Content-Length.' };
  if (encodings.length > 1 || (encodings.length === 1 && encodings[0]!.toLowerCase() !== 'chunked'))
    return { status: 501, message: 'The only Transfer-Encoding that is taken is chunked.' };
  if (!url.startsWith('/'))
    return { status: 400, message: `The request target ${url} is not a path: this is not a forward proxy.` };
  if (asksForWebSocket(request) && hasBody(request))
    return { status: 400, message: 'A request to upgrade has no body.' };
  return null;
}
