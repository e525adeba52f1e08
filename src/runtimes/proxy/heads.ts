/**
 * Heads of HTTP/1.1 messages as text (latin1, a character for each byte). Read strictly: what is not plainly right is refused,
 * so that nobody behind the proxy can read a message otherwise than it does (request smuggling, RFC 9112 §11.2). Headers are
 * passed on as they were written, apart from those that belong to one connection.
 */

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const FIELDS = `(?:${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n)*`;
const REQUEST = new RegExp(
  `^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[\\x21-\\x7e]*) HTTP/1\\.1\\r\\n(${FIELDS})\\r\\n$`,
);
const RESPONSE = new RegExp(
  `^HTTP/1\\.([01]) ([1-9]\\d\\d)(?: ([\\t\\x20-\\x7e\\x80-\\xff]*))?\\r\\n(${FIELDS})\\r\\n$`,
);
const TRAILERS = new RegExp(`^${FIELDS}$`);

/** What becomes of a header: passed on, left out, a part of how the message is framed, or a reason to leave it to Node's parser. */
type Fate = 'drop' | 'connection' | 'host' | 'length' | 'encoding' | 'keep' | 'date' | 'refuse';

/** Headers that belong to one connection (RFC 9110 §7.6.1), and those that only the proxy may say. */
const REQUEST_FATES = new Map<string, Fate>([
  ['connection', 'connection'],
  ['host', 'host'],
  ['content-length', 'length'],
  ['keep-alive', 'drop'],
  ['proxy-connection', 'drop'],
  ['proxy-authenticate', 'drop'],
  ['proxy-authorization', 'drop'],
  ['te', 'drop'],
  ['forwarded', 'drop'],
  ['x-real-ip', 'drop'],
  ['transfer-encoding', 'refuse'],
  ['trailer', 'refuse'],
  ['upgrade', 'refuse'],
  ['expect', 'refuse'],
  ['http2-settings', 'refuse'],
]);

const RESPONSE_FATES = new Map<string, Fate>([
  ['connection', 'connection'],
  ['content-length', 'length'],
  ['transfer-encoding', 'encoding'],
  ['keep-alive', 'keep'],
  ['date', 'date'],
  ['proxy-connection', 'drop'],
  ['proxy-authenticate', 'drop'],
  ['te', 'drop'],
  ['trailer', 'drop'],
  ['upgrade', 'drop'],
]);

const DIGITS = /^\d{1,15}$/;
const KEPT = /^keep-alive$/i;
const CLOSED = /^close$/i;
const UPGRADED = /^upgrade$/i;

/** A request that needs nothing particular. */
export interface PlainRequest {
  method: string;
  /** Begins with a slash. */
  path: string;
  /** As the client wrote it. */
  host: string;
  /** Whether the client wants its connection closed afterwards. */
  close: boolean;
  /** Bytes of the body. */
  length: number;
  /** Header lines for the upstream, each with its end. */
  lines: string;
}

/** Calls `take` for each line of a block of fields that was checked already. */
function eachField(block: string, take: (name: string, value: string, line: string) => void): void {
  for (let at = 0; at < block.length;) {
    const colon = block.indexOf(':', at);
    const end = block.indexOf('\r\n', colon);
    take(block.slice(at, colon).toLowerCase(), block.slice(colon + 1, end).trim(), block.slice(at, end + 2));
    at = end + 2;
  }
}

/**
 * Reads the head of a request, blank line included. Null for everything that is not simple, right or wrong: another method or
 * version, no single host, a body of unknown length, an upgrade, an expectation. Node's parser decides about those.
 */
export function readPlainRequest(head: string): PlainRequest | null {
  const match = REQUEST.exec(head);
  if (!match) return null;
  const request: PlainRequest = { method: match[1]!, path: match[2]!, host: '', close: false, length: -1, lines: '' };
  let simple = true;
  eachField(match[3]!, (name, value, line) => {
    switch (REQUEST_FATES.get(name)) {
      case undefined:
        if (!name.startsWith('x-forwarded-')) request.lines += line;
        break;
      case 'host':
        if (request.host !== '' || value === '') simple = false;
        request.host = value;
        request.lines += line;
        break;
      case 'connection':
        if (CLOSED.test(value)) request.close = true;
        else if (!KEPT.test(value)) simple = false;
        break;
      case 'length':
        if (request.length !== -1 || !DIGITS.test(value)) simple = false;
        request.length = Number(value);
        request.lines += line;
        break;
      case 'drop':
        break;
      default:
        simple = false;
    }
  });
  if (!simple || request.host === '') return null;
  request.length = Math.max(0, request.length);
  return request;
}

/** How the end of a body is known. */
export type Framing = { by: 'length'; length: number } | { by: 'chunks' } | { by: 'close' };

export interface ResponseHead {
  status: number;
  reason: string;
  /** Header lines for the client, each with its end; `Content-Length` among them, `Date` if the upstream said one. */
  lines: string;
  hasDate: boolean;
  framing: Framing;
  /** Whether the connection may be used again afterwards. */
  kept: boolean;
  /** How long the upstream keeps it, in milliseconds, if it says so. */
  keptMs: number | undefined;
  /** Protocol that the upstream changes to (status 101). */
  upgrade: string | undefined;
}

/** Why an answer of an upstream cannot be passed on. */
export class MalformedAnswer extends Error {}

/** Reads the head of a response, blank line included. Throws MalformedAnswer. */
export function readResponseHead(head: string): ResponseHead {
  const match = RESPONSE.exec(head);
  if (!match) throw new MalformedAnswer('its head is not one of HTTP/1.1');
  const block = match[4]!;
  const response: ResponseHead = {
    status: Number(match[2]),
    reason: match[3] ?? '',
    lines: '',
    hasDate: false,
    framing: { by: 'close' },
    kept: match[1] === '1',
    keptMs: undefined,
    upgrade: undefined,
  };
  const named: string[] = [];
  let length: number | undefined;
  let chunked = false;
  eachField(block, (name, value, line) => {
    switch (RESPONSE_FATES.get(name)) {
      case undefined:
        response.lines += line;
        break;
      case 'date':
        response.hasDate = true;
        response.lines += line;
        break;
      case 'length':
        if (length !== undefined || !DIGITS.test(value)) throw new MalformedAnswer('it has no single length');
        length = Number(value);
        response.lines += line;
        break;
      case 'encoding':
        if (chunked || value.toLowerCase() !== 'chunked')
          throw new MalformedAnswer(`its transfer encoding is ${value}`);
        chunked = true;
        break;
      case 'connection':
        if (CLOSED.test(value)) response.kept = false;
        else if (KEPT.test(value)) response.kept = true;
        else named.push(...value.split(',').map((part) => part.trim().toLowerCase()));
        break;
      case 'keep':
        response.keptMs = keepAliveMs(value);
        break;
      default:
        if (name === 'upgrade') response.upgrade = value;
    }
  });
  if (chunked && length !== undefined) throw new MalformedAnswer('it has a length and is chunked');
  if (chunked) response.framing = { by: 'chunks' };
  else if (length !== undefined) response.framing = { by: 'length', length };
  if (named.length > 0) obeyConnection(response, named);
  return response;
}

/** A Connection header of several parts: some are about the connection, the others name headers that are. */
function obeyConnection(response: ResponseHead, named: string[]): void {
  if (named.includes('keep-alive')) response.kept = true;
  if (named.includes('close')) response.kept = false;
  if (named.every((name) => KEPT.test(name) || CLOSED.test(name) || UPGRADED.test(name))) return;
  response.lines = withoutFields(response.lines, named);
}

function withoutFields(block: string, names: string[]): string {
  let rest = '';
  eachField(block, (name, _value, line) => {
    if (!names.includes(name)) rest += line;
  });
  return rest;
}

function keepAliveMs(value: string): number | undefined {
  const [, seconds] = /(?:^|[,;\s])timeout=(\d{1,6})/i.exec(value) ?? [];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

/** Names and values in turn, as `ServerResponse.writeHead` takes them. */
export function fieldPairs(block: string): string[] {
  const pairs: string[] = [];
  for (let at = 0; at < block.length;) {
    const colon = block.indexOf(':', at);
    const end = block.indexOf('\r\n', colon);
    pairs.push(block.slice(at, colon), block.slice(colon + 1, end).trim());
    at = end + 2;
  }
  return pairs;
}

/** Header lines that came after the body, for the client. Throws MalformedAnswer. */
export function readTrailers(lines: string): string {
  if (!TRAILERS.test(lines)) throw new MalformedAnswer('its trailers are none of HTTP/1.1');
  // Trailers must not change how a message is framed or routed (RFC 9110 §6.5.1).
  return withoutFields(lines, [...RESPONSE_FATES.keys()]);
}
