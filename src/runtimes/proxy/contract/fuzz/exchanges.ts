import { makeRandom, type Random } from '#test/harness/random.ts';
import { hostileAnswer } from '#runtimes/proxy/contract/fuzz/answers.ts';
import type { Step } from '#runtimes/proxy/contract/fuzz/step.ts';
import { http2Garbage } from '#runtimes/proxy/contract/fuzz/http2.ts';
import { ATTACKS } from '#runtimes/proxy/contract/hostile-visitors.ts';
import { handshake } from '#runtimes/proxy/contract/websockets.ts';

/** Host names of the tenants: two plain services, one of gRPC, one whose answers are hostile, and one that no route names. */
export const HOSTS = {
  a: 'a.fuzz.localhost',
  b: 'b.fuzz.localhost',
  grpc: 'grpc.fuzz.localhost',
  hostile: 'hostile.fuzz.localhost',
  none: 'none.fuzz.localhost',
} as const;

/** Conversation of one visitor with the proxy, derived from a seed and a number alone. */
export interface Exchange {
  id: number;
  kind: string;
  visitor: Step[];
  /** Answers that a well-formed visitor must get, in order. Absent: any answer or none is allowed. */
  expected?: { url: string; body: string }[];
  /** Answer of the hostile upstream. */
  answer?: Step[];
}

/** Address that a visitor claims in every hostile request: an upstream that reads it received the visitor's own bytes. */
const CLAIMED = '6.6.6.6';
const CLAIM = `X-Forwarded-For: ${CLAIMED}\r\n`;

/** Returns a path that names its exchange, so that a misdirected request or answer is recognized. */
const markedPath = (id: number, at: number | string): string => `/x/${id}/${at}/`;

type Generator = (id: number, random: Random) => Omit<Exchange, 'id' | 'kind'>;

const chance = (random: Random, probability: number): boolean => random.next() < probability;
const tenant = (random: Random): string => random.pick([HOSTS.a, HOSTS.b]);
const someBytes = (random: Random, count: number): string =>
  Array.from({ length: count }, () => String.fromCharCode(random.below(256))).join('');
const word = (random: Random, most: number): string =>
  Array.from({ length: random.below(most) }, () => random.pick([...'abcdefghij0123456789'])).join('');

/** Cuts bytes into packets. Hostile visitors also leave early, end their side or reset the connection. */
function inPackets(text: string, random: Random, isHostile: boolean): Step[] {
  const fate = random.next();
  if (fate < 0.5) return [{ write: text }];
  if (isHostile && fate < 0.7) {
    const steps: Step[] = [{ write: text.slice(0, random.below(text.length + 1)) }];
    if (chance(random, 0.3)) steps.push({ pause: random.below(10) });
    return [...steps, ...random.pick<Step[]>([[], [{ end: true }], [{ reset: true }]])];
  }
  if (isHostile && fate < 0.75) return [{ write: text }, { end: true }];
  const steps: Step[] = [];
  const isSlow = fate > 0.97;
  for (let at = 0, pieces = 0; at < text.length; pieces++) {
    const size = pieces > 8 ? text.length : isSlow ? 1 : 1 + random.below(Math.min(400, text.length));
    steps.push({ write: text.slice(at, at + size) }, { pause: random.below(isSlow ? 20 : 4) });
    at += size;
  }
  return steps;
}

const hostile = (text: string, random: Random) => ({ visitor: inPackets(text, random, true) });

const followUp = (id: number, random: Random): string =>
  chance(random, 0.3) ? `GET ${markedPath(id, 'next')} HTTP/1.1\r\nHost: ${tenant(random)}\r\n${CLAIM}\r\n` : '';

function chunked(body: string, random: Random): string {
  let text = '';
  for (let at = 0; at < body.length;) {
    const part = body.slice(at, at + 1 + random.below(body.length));
    const size = part.length.toString(16).padStart(1 + random.below(4), '0');
    text += `${chance(random, 0.5) ? size : size.toUpperCase()}${random.pick(['', '', ';a=b', ';a="b"', ';a'])}\r\n${part}\r\n`;
    at += part.length;
  }
  return `${text}0\r\n${random.pick(['', 'X-Trailer: 1\r\n'])}\r\n`;
}

/** Valid requests, pipelined on one connection: each must be answered, in order, whatever others do meanwhile. */
const wellFormed: Generator = (id, random) => {
  const expected: { url: string; body: string }[] = [];
  let text = '';
  for (let at = 0; at <= random.below(4); at++) {
    const host = random.pick([
      (name: string) => name,
      (name: string) => name.toUpperCase(),
      (name: string) => `${name}.`,
      (name: string) => `${name}:8080`,
    ]);
    const method = random.pick(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
    const url = markedPath(id, at);
    const hasBody = method !== 'GET' && method !== 'OPTIONS';
    const body = hasBody ? word(random, 300) : '';
    let head = `${method} ${url} HTTP/1.1\r\n${random.pick(['Host', 'host', 'HOST'])}:${random.pick(['', ' ', '\t '])}${host(tenant(random))}\r\n`;
    if (chance(random, 0.3)) head += `X-A: ${word(random, 2_000)}\r\n`;
    if (chance(random, 0.3)) head += CLAIM;
    if (!hasBody) text += `${head}\r\n`;
    else if (chance(random, 0.5)) text += `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
    else text += `${head}Transfer-Encoding: chunked\r\n\r\n${chunked(body, random)}`;
    expected.push({ url, body });
  }
  return { visitor: inPackets(text, random, false), expected };
};

const METHODS = [
  'GET',
  'get',
  'G\0T',
  'GET\t',
  '',
  'PRI',
  'CONNECT',
  'TRACE',
  'OPTIONS',
  'HEAD',
  'POST',
  'PROPFIND',
  '\r\n\r\nGET',
  'GE T',
  'G\xcbT',
  'A'.repeat(300),
];
const VERSIONS = ['1.1', '1.0', '0.9', '2.0', '1.10', '1.1 ', '11', '3.0', '1.1\0', '01.1', '-1', ''].map(
  (version) => `HTTP/${version}`,
);

const target = (id: number, random: Random): string => {
  const path = markedPath(id, 'odd');
  return random.pick([
    path,
    path,
    '*',
    '',
    `http://${HOSTS.b}${path}`,
    `http://user:secret@${HOSTS.b}:99999${path}`,
    `https://${HOSTS.b}${path}`,
    `//${HOSTS.b}${path}`,
    `${path}../../..//%2e%2e/`,
    `${path}%00%0d%0aX-A: 1`,
    `${path}%`,
    `${path}\x80\xff`,
    `${path}a b`,
    `${path}${'a'.repeat(40_000)}`,
    `${path}#fragment`,
    `?${path}`,
    `${HOSTS.b}:80`,
    `${path}\t`,
    `${path}\\..\\`,
    `${path}"<>^\`{|}`,
  ]);
};

const requestLine: Generator = (id, random) => {
  const version = random.pick(['HTTP/1.1', 'HTTP/1.1', 'http/1.1', 'HTTPS/1.1', '', ...VERSIONS]);
  const line = `${random.pick(['GET', 'POST', ...METHODS])} ${target(id, random)} ${version}`;
  return hostile(`${line}\r\nHost: ${tenant(random)}\r\n${CLAIM}\r\n${followUp(id, random)}`, random);
};

const hostLine = (random: Random): string =>
  random.pick([
    '',
    `Host: ${HOSTS.a}\r\nHost: ${HOSTS.b}\r\n`,
    `Host: ${HOSTS.a}, ${HOSTS.b}\r\n`,
    `Host: ${HOSTS.a}@${HOSTS.b}\r\n`,
    `Host: ${HOSTS.a}:${HOSTS.b}\r\n`,
    `Host: ${HOSTS.a}:\r\n`,
    `Host: ${HOSTS.a}:99999\r\n`,
    `Host: ${HOSTS.a}\0${HOSTS.b}\r\n`,
    `Host: ${HOSTS.a}/${HOSTS.b}\r\n`,
    `Host: ${HOSTS.a}#\r\n`,
    `Host: [::1]\r\n`,
    `Host: [${HOSTS.a}\r\n`,
    `Host:\r\n ${HOSTS.a}\r\n`,
    `Host: ${HOSTS.a}\r\n ${HOSTS.b}\r\n`,
    `Host : ${HOSTS.a}\r\n`,
    `Host: ${HOSTS.none}\r\n`,
    `Host: ${HOSTS.a}..\r\n`,
    `Host: *\r\n`,
    `H\0st: ${HOSTS.a}\r\n`,
    `Host: ${'a'.repeat(70_000)}\r\n`,
    `Host: ${HOSTS.grpc}\r\n`,
    `X-Forwarded-Host: ${HOSTS.b}\r\nHost: ${HOSTS.a}\r\n`,
  ]);

const headerLine = (random: Random): string =>
  random.pick([
    'X-A: 1\0\r\n',
    'X-A: 1\rHost: b.fuzz.localhost\r\n',
    'X-A: 1\nX-B: 2\r\n',
    'X-A : 1\r\n',
    ' X-A: 1\r\n',
    'X-A\r\n',
    ': 1\r\n',
    '\x01: 1\r\n',
    'X-\xff: \xff\xfe\r\n',
    'X-A: 1\r\n folded\r\n',
    `X-A: ${'a'.repeat(40_000)}\r\n`,
    'X-A: 1\r\n'.repeat(150),
    `${'x'.repeat(10_000)}: 1\r\n`,
    'Connection: host, x-forwarded-for, content-length\r\n',
    'Connection: close, keep-alive\r\n',
    'Connection: , ,,\r\n',
    'Expect: 100-continue\r\n',
    'Expect: something\r\n',
    'TE: trailers, gzip\r\n',
    'Trailer: Content-Length\r\n',
    'Proxy-Connection: keep-alive\r\n',
    'Keep-Alive: timeout=999999\r\n',
    'X_Forwarded_For: 6.6.6.6\r\n',
    'Forwarded: for=6.6.6.6\r\n',
    '__proto__: 1\r\nconstructor: 1\r\n',
    'Upgrade: x\r\nConnection: upgrade\r\n',
    'Accept: text/html, application/json\r\n',
  ]);

const headerFields: Generator = (id, random) => {
  let head = `GET ${markedPath(id, 'fields')} HTTP/1.1\r\n`;
  head += chance(random, 0.4) ? hostLine(random) : `Host: ${tenant(random)}\r\n`;
  for (let count = random.below(4); count >= 0; count--) head += headerLine(random);
  return hostile(`${head}${CLAIM}\r\n${followUp(id, random)}`, random);
};

const smuggledIn = (id: number, random: Random): string =>
  `GET ${markedPath(id, 'hidden')} HTTP/1.1\r\nHost: ${tenant(random)}\r\n${CLAIM}\r\n`;

const attack: Generator = (id, random) => {
  const host = tenant(random);
  const text = ATTACKS[random.pick(Object.keys(ATTACKS))]!(smuggledIn(id, random), host);
  return hostile(text.replace(' /outer ', ` ${markedPath(id, 'outer')} `) + followUp(id, random), random);
};

const ENCODINGS = [
  'Transfer-Encoding: chunked\r\n',
  'transfer-encoding:chunked\r\n',
  'Transfer-Encoding: Chunked\r\n',
  'Transfer-Encoding: "chunked"\r\n',
  'Transfer-Encoding: chunked \r\n',
  'Transfer-Encoding:\tchunked\r\n',
  'Transfer-Encoding:\x0bchunked\r\n',
  'Transfer-Encoding: chunked\0\r\n',
  'Transfer-Encoding: chunked;q=1\r\n',
  'Transfer-Encoding: ,chunked\r\n',
  'Transfer-Encoding: chunked,\r\n',
  'Transfer-Encoding: identity\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'Transfer-Encoding:\r\n chunked\r\n',
  'Transfer-Encoding\r\n: chunked\r\n',
  'Transfer_Encoding: chunked\r\n',
  'X: 1\nTransfer-Encoding: chunked\r\n',
  'X: 1\rTransfer-Encoding: chunked\r\n',
  'Transfer-Encoding: \r\n',
  'TRANSFER-ENCODING: CHUNKED\r\n',
];
const LENGTHS = ['L', '0', '+L', '-1', '0xL', 'L, L', '0, L', '00L', 'L ', ' L', '\tL', 'L;', '1e1', '', 'L\0', 'NaN'];

/** Lengths and encodings in any number and order, before a body that hides a request. */
const framing: Generator = (id, random) => {
  const hidden = smuggledIn(id, random);
  const size = hidden.length.toString(16);
  const body = random.pick([
    hidden,
    `0\r\n\r\n${hidden}`,
    `${size}\r\n${hidden}\r\n0\r\n\r\n`,
    `1\r\nZ\r\nQ\r\n\r\n${hidden}`,
  ]);
  const lines: string[] = [];
  for (let count = random.below(3); count >= 0; count--)
    lines.push(
      chance(random, 0.5)
        ? random.pick(ENCODINGS)
        : `${random.pick(['Content-Length', 'content-length', 'Content_Length', 'Content-Length '])}: ${random.pick(LENGTHS).replaceAll('L', String(body.length))}\r\n`,
    );
  const version = chance(random, 0.85) ? '1.1' : '1.0';
  const method = random.pick(['POST', 'POST', 'GET', 'DELETE', 'HEAD', 'OPTIONS']);
  const head = `${method} ${markedPath(id, 'framed')} HTTP/${version}\r\nHost: ${tenant(random)}\r\n${CLAIM}`;
  return hostile(`${head}${lines.join('')}\r\n${body}${followUp(id, random)}`, random);
};

const SIZES = ['5', '05', '0x5', '+5', '-5', ' 5', '5 ', '5;', '5;a="', '5\t', '5\0', 'g', '', 'FFFFFFFFFFFFFFFF'];
const ENDS = ['\r\n', '\n', '\r', '', '\r\r\n', '\n\r'];

const chunks: Generator = (id, random) => {
  let text = `POST ${markedPath(id, 'chunks')} HTTP/1.1\r\nHost: ${tenant(random)}\r\n${CLAIM}Transfer-Encoding: chunked\r\n\r\n`;
  const end = () => (chance(random, 0.7) ? '\r\n' : random.pick(ENDS));
  for (let count = random.below(4); count >= 0; count--) {
    const size = chance(random, 0.6) ? '5' : random.pick([...SIZES, `5;${'a'.repeat(20_000)}`, '10000000000000005']);
    text += `${size}${end()}${chance(random, 0.8) ? 'abcde' : word(random, 9)}${end()}`;
  }
  const trailer = random.pick([
    '',
    'X-T: 1\r\n',
    'Content-Length: 5\r\n',
    'X-T : 1\r\n',
    'X\0: 1\r\n',
    'X: 1\r\n'.repeat(400),
  ]);
  text += `${random.pick(['0', '00000', '0;a', '', '-0'])}${end()}${trailer}${end()}`;
  return hostile(text + smuggledIn(id, random), random);
};

/** Requests to change the protocol, alone, behind others, with bodies and with bytes that come too early. */
const upgrades: Generator = (id, random) => {
  const host = tenant(random);
  let text = handshake(host).replace('/socket', markedPath(id, 'socket')).replace('\r\n\r\n', `\r\n${CLAIM}\r\n`);
  const field = random.pick([
    'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk',
    'Upgrade: h2c, websocket',
    'Upgrade: WebSocket',
    'Upgrade: websocket\r\nUpgrade: h2c',
    'Upgrade: websocket\r\nContent-Length: 5',
    'Upgrade: websocket\r\nTransfer-Encoding: chunked',
    'Upgrade: TLS/1.0',
    'Upgrade: websocket',
  ]);
  text = text.replace('Upgrade: websocket', field);
  if (chance(random, 0.2)) text = text.replace('Connection: Upgrade', 'Connection: keep-alive, x');
  const before = random.pick([
    '',
    '',
    `POST ${markedPath(id, 0)} HTTP/1.1\r\nHost: ${host}\r\n${CLAIM}Content-Length: 2\r\n\r\nab`,
  ]);
  const after = random.pick([
    '',
    text,
    smuggledIn(id, random),
    someBytes(random, 200),
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]);
  return hostile(before + text + after, random);
};

const bytes: Generator = (id, random) => {
  const text = someBytes(random, 1 + random.below(2_000));
  if (chance(random, 0.5)) return hostile(text, random);
  // A valid request of which some bytes behind its path were changed.
  const path = `POST ${markedPath(id, 'bytes')}`;
  const rest = [...` HTTP/1.1\r\nHost: ${tenant(random)}\r\n${CLAIM}Content-Length: 5\r\n\r\nabcde`];
  for (let count = random.below(5); count >= 0; count--)
    rest[random.below(rest.length)] = random.pick(['', '\0', '\r', '\n', ' ', ':', '\xff', someBytes(random, 1)]);
  return hostile(path + rest.join('') + smuggledIn(id, random), random);
};

const http2: Generator = (id, random) =>
  hostile(http2Garbage(random, [HOSTS.a, HOSTS.b, HOSTS.grpc], markedPath(id, 'h2')), random);

/** A valid request whose upstream answers with something hostile. */
const answers: Generator = (id, random) => {
  const method = random.pick(['GET', 'GET', 'POST', 'HEAD']);
  const body = method === 'POST' ? word(random, 5_000) : '';
  const length = method === 'POST' ? `Content-Length: ${body.length}\r\n` : '';
  const text = `${method} ${markedPath(id, 0)} HTTP/1.1\r\nHost: ${HOSTS.hostile}\r\n${CLAIM}${length}\r\n${body}`;
  return {
    visitor: inPackets(text, random, chance(random, 0.1)),
    answer: hostileAnswer(random, markedPath(id, 'answer')),
  };
};

const KINDS: [string, Generator][] = Object.entries({
  wellFormed,
  requestLine,
  headerFields,
  attack,
  framing,
  chunks,
  upgrades,
  bytes,
  http2,
  answers,
  answersAgain: answers,
  framingAgain: framing,
});

/** Creates one exchange; the same seed and number create the same one, whatever ran before. */
export function makeExchange(seed: number, id: number): Exchange {
  const random = makeRandom(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(id + 1, 0x85ebca6b));
  const [kind, generate] = random.pick(KINDS);
  return { id, kind, ...generate(id, random) };
}
