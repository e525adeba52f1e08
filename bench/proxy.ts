/**
 * Requests through our proxies, nginx and Caddy beside the same requests sent directly to the upstream: `node bench/proxy.ts`.
 * Upstream, proxy and load are processes of their own. The upstream is an empty `node:http` server, the least that an application
 * can be: the more it does itself, the nearer the ratio comes to 1.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { openFilesLimit } from '#runtimes/proxy/descriptors.ts';
import { median, quantile } from './processes.ts';
import {
  HOST,
  memory,
  processorTime,
  startBuiltin,
  startCaddyAdapter,
  startCaddyByHand,
  startNginxByHand,
  type Contestant,
} from './proxy-contestants.ts';

const CONNECTIONS = 32;
const WARM_UP_MS = 700;
const MEASURED_MS = 2_000;
const ROUNDS = 5;
/** Connections that rest while memory is measured: as many as the load's process may open, at most 10,000. */
const RESTING = Math.min(10_000, openFilesLimit() - 500);

/** Result of one run of the load. */
interface Run {
  /** Answered requests per second. */
  rate: number;
  /** Milliseconds that half of the requests took at most, and 99 of 100. */
  median: number;
  p99: number;
  /** All requests, those of the warm-up included. */
  total: number;
}

/** A run with what the proxy used for each request, in microseconds. */
type Measured = Run & { processor: number | undefined };

/** Medians of the rounds. */
export interface ContestantFigures {
  name: string;
  /** Requests per second over 32 connections, and the median of the rounds' ratios to the upstream itself. */
  rate: number;
  ratio: number;
  median: number;
  p99: number;
  /** Microseconds of processor time for one request; undefined for the upstream, and where the machine does not tell. */
  processor: number | undefined;
  /** Milliseconds of one request after the other on one connection. */
  single: number;
  /** MiB before the first request, and with `resting` connections; undefined like `processor`. */
  memory: number | undefined;
  crowdedMemory: number | undefined;
}

export interface ProxyFigures {
  direct: ContestantFigures;
  builtin: ContestantFigures;
  /** Figures of the other proxies that are installed, as Quarterdeck runs them and as configured by hand. */
  others: ContestantFigures[];
  /** Median of the rounds' ratios of Caddy as we run it to Caddy by hand; undefined where Caddy is not installed. */
  caddyRatio: number | undefined;
  resting: number;
}

/** Measures the contestants in turns, so that load from elsewhere affects all of them equally. */
export async function benchProxy(): Promise<ProxyFigures> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-proxy-'));
  const upstream = start('upstream');
  const contestants: Contestant[] = [];
  try {
    const port = Number(await firstLine(upstream));
    contestants.push({ name: 'the upstream itself', port, pids: [], end: async () => undefined });
    contestants.push(await startBuiltin(join(directory, 'builtin'), port));
    const adapter = await startCaddyAdapter(join(directory, 'adapter'), port);
    const byHand = await startCaddyByHand(join(directory, 'caddy'), port);
    const nginx = await startNginxByHand(join(directory, 'nginx'), port);
    contestants.push(...[adapter, byHand, nginx].filter((one) => one !== null));
    const fresh = contestants.map(({ pids }) => memory(pids));
    const rounds: { many: Measured[]; single: Measured[] }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [many, single]: [Measured[], Measured[]] = [[], []];
      for (const contestant of contestants) many.push(await run(contestant, CONNECTIONS));
      for (const contestant of contestants) single.push(await run(contestant, 1));
      rounds.push({ many, single });
    }
    const crowded: (number | undefined)[] = [];
    for (const contestant of contestants) crowded.push(await memoryOfCrowd(contestant));
    const [direct, builtin, ...others] = contestants.map(({ name }, at): ContestantFigures => {
      const of = (pick: (run: Measured) => number) => median(rounds.map(({ many }) => pick(many[at]!)));
      return {
        name,
        rate: of(({ rate }) => rate),
        ratio: median(rounds.map(({ many }) => many[at]!.rate / many[0]!.rate)),
        median: of((one) => one.median),
        p99: of(({ p99 }) => p99),
        processor: rounds[0]!.many[at]!.processor === undefined ? undefined : of(({ processor }) => processor!),
        single: median(rounds.map(({ single }) => single[at]!.median)),
        memory: fresh[at],
        crowdedMemory: crowded[at],
      };
    });
    const ratesOf = (contestant: Contestant) => {
      const at = contestants.indexOf(contestant);
      return rounds.map(({ many }) => many[at]!.rate);
    };
    const caddyRatio =
      adapter && byHand ? median(ratesOf(adapter).map((rate, at) => rate / ratesOf(byHand)[at]!)) : undefined;
    return { direct: direct!, builtin: builtin!, others, caddyRatio, resting: RESTING };
  } finally {
    for (const contestant of contestants) await contestant.end();
    upstream.kill();
    rmSync(directory, { recursive: true });
  }
}

async function run({ port, pids }: Contestant, connections: number): Promise<Measured> {
  const before = processorTime(pids);
  const found = JSON.parse(await firstLine(start('load', port, connections))) as Run;
  const after = processorTime(pids);
  return { ...found, processor: before === undefined ? undefined : (after! - before) / found.total };
}

async function memoryOfCrowd({ port, pids }: Contestant): Promise<number | undefined> {
  if (pids.length === 0) return undefined;
  const child = start('rest', port, RESTING);
  await firstLine(child);
  const found = memory(pids);
  const ended = once(child, 'exit');
  child.kill();
  await ended;
  return found;
}

function start(role: 'upstream' | 'load' | 'rest', port = 0, connections = 0): ChildProcess {
  const args = [fileURLToPath(import.meta.url), role, String(port), String(connections)];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function firstLine(child: ChildProcess): Promise<string> {
  const line = once(child.stdout!, 'data').then(([data]) => String(data));
  const ended = once(child, 'exit').then(([status]) => {
    throw new Error(`A process of the bench ended with status ${status}.`);
  });
  return Promise.race([line, ended]);
}

function serve(): void {
  const body = JSON.stringify({ text: 'x'.repeat(1000) });
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const server = createServer((_request, response) => response.writeHead(200, headers).end(body));
  server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
}

async function load(port: number, connections: number): Promise<void> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections });
  let [took, total]: [number[], number] = [[], 0];
  const line = async (): Promise<never> => {
    for (;;) {
      const sent = performance.now();
      const { statusCode, body } = await pool.request({ path: '/', method: 'GET', headers: { host: HOST } });
      await body.text();
      if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
      took.push(performance.now() - sent);
      total++;
    }
  };
  for (let n = 0; n < connections; n++) void line();
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
  took = [];
  const started = performance.now();
  await new Promise((resolve) => setTimeout(resolve, MEASURED_MS));
  const rate = Math.round((took.length * 1000) / (performance.now() - started));
  console.log(JSON.stringify({ rate, median: median(took), p99: quantile(took, 0.99), total } satisfies Run));
  process.exit(0);
}

/** Opens connections that stay idle after one request each, and prints a line when all are open. */
async function rest(port: number, connections: number): Promise<void> {
  const enter = async (n: number) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (n % 10)}` });
    await once(socket, 'connect');
    socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await once(socket, 'data');
    socket.resume();
  };
  for (let n = 0; n < connections; n += 50)
    await Promise.all(Array.from({ length: Math.min(50, connections - n) }, (_, at) => enter(n + at)));
  console.log('open');
}

/** Table of all that was measured, as Markdown. */
export function proxyTable({ direct, builtin, others }: ProxyFigures): string {
  const of = (value: number | undefined, unit: string) => (value === undefined ? '–' : `${Math.round(value)} ${unit}`);
  const rows = [direct, builtin, ...others].map((one) => [
    one.name,
    `${one.rate}/s`,
    one.ratio.toFixed(2),
    `${one.median.toFixed(2)} ms`,
    `${one.p99.toFixed(1)} ms`,
    of(one.processor, 'µs'),
    of(one.memory, 'MiB'),
    of(one.crowdedMemory, 'MiB'),
  ]);
  const head = ['Through', 'Requests', 'Ratio', 'Median', 'p99', 'Processor', 'Memory', 'Memory, crowded'];
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const [role, port, connections] = process.argv.slice(2);
if (import.meta.main) {
  if (role === 'upstream') serve();
  else if (role === 'load') await load(Number(port), Number(connections));
  else if (role === 'rest') await rest(Number(port), Number(connections));
  else {
    const figures = await benchProxy();
    console.log(proxyTable(figures));
    const { caddyRatio } = figures;
    if (caddyRatio !== undefined)
      console.log(`Caddy as Quarterdeck runs it beside Caddy by hand: ${caddyRatio.toFixed(2)}`);
  }
}
