/**
 * Requests through the proxy beside the same requests sent directly to the upstream: `node bench/proxy.ts`. Upstream,
 * proxy and load are processes of their own. The upstream is an empty `node:http` server, the least that an application can be:
 * the more it does itself, the nearer the ratio comes to 1.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { createRouter, stopProxy } from '#runtimes/proxy/index.ts';
import { median } from './processes.ts';

const HOST = 'bench.localhost';
const CONNECTIONS = 32;
const WARM_UP_MS = 1_000;
const MEASURED_MS = 3_000;
const ROUNDS = 3;

/** What one run of the load found. */
interface Run {
  /** Answered requests per second. */
  rate: number;
  /** Milliseconds that half of the requests took at most. */
  median: number;
}

/** Medians of the rounds. */
export interface ProxyFigures {
  /** Requests per second over 32 connections. */
  direct: number;
  proxied: number;
  /** Median of the rounds' ratios. */
  ratio: number;
  /** Milliseconds of one request after the other on one connection. */
  directMs: number;
  proxiedMs: number;
}

/** Measures in turns, so that a busy machine is unfair to both alike. */
export async function benchProxy(): Promise<ProxyFigures> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-proxy-'));
  const upstream = start('upstream');
  try {
    const port = Number(await firstLine(upstream));
    const router = await createRouter({ directory, host: '127.0.0.1', port: 0, log: () => undefined });
    const routes = [{ host: HOST, protocol: 'HTTP' as const, upstreams: [{ address: '127.0.0.1', port }] }];
    await router.set('bench', 1, routes);
    const run = async (to: number, connections: number): Promise<Run> =>
      JSON.parse(await firstLine(start('load', to, connections)));
    const many: { direct: Run; proxied: Run }[] = [];
    const single: { direct: Run; proxied: Run }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      many.push({ direct: await run(port, CONNECTIONS), proxied: await run(router.port, CONNECTIONS) });
      single.push({ direct: await run(port, 1), proxied: await run(router.port, 1) });
    }
    return {
      direct: median(many.map((pair) => pair.direct.rate)),
      proxied: median(many.map((pair) => pair.proxied.rate)),
      ratio: median(many.map((pair) => pair.proxied.rate / pair.direct.rate)),
      directMs: median(single.map((pair) => pair.direct.median)),
      proxiedMs: median(single.map((pair) => pair.proxied.median)),
    };
  } finally {
    upstream.kill();
    await stopProxy(directory);
    rmSync(directory, { recursive: true });
  }
}

function start(role: 'upstream' | 'load', port = 0, connections = 0): ChildProcess {
  const args = [fileURLToPath(import.meta.url), role, String(port), String(connections)];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function firstLine(child: ChildProcess): Promise<string> {
  return String((await once(child.stdout!, 'data'))[0]);
}

function serve(): void {
  const body = JSON.stringify({ text: 'x'.repeat(1000) });
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const server = createServer((_request, response) => response.writeHead(200, headers).end(body));
  server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
}

async function load(port: number, connections: number): Promise<void> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections });
  let took: number[] = [];
  const line = async (): Promise<never> => {
    for (;;) {
      const sent = performance.now();
      const { statusCode, body } = await pool.request({ path: '/', method: 'GET', headers: { host: HOST } });
      await body.text();
      if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
      took.push(performance.now() - sent);
    }
  };
  for (let n = 0; n < connections; n++) void line();
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
  took = [];
  const started = performance.now();
  await new Promise((resolve) => setTimeout(resolve, MEASURED_MS));
  const rate = Math.round((took.length * 1000) / (performance.now() - started));
  console.log(JSON.stringify({ rate, median: median(took) } satisfies Run));
  process.exit(0);
}

const [role, port, connections] = process.argv.slice(2);
if (import.meta.main) {
  if (role === 'upstream') serve();
  else if (role === 'load') await load(Number(port), Number(connections));
  else {
    const { direct, proxied, ratio, directMs, proxiedMs } = await benchProxy();
    console.log(`direct ${direct}/s, through the proxy ${proxied}/s: ${ratio.toFixed(2)}`);
    console.log(
      `median of one request: direct ${directMs.toFixed(2)} ms, through the proxy ${proxiedMs.toFixed(2)} ms`,
    );
  }
}
