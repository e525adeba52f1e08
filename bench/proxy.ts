/**
 * Requests per second through the proxy beside the same requests sent directly to the upstream: `node bench/proxy.ts`. Upstream,
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

const HOST = 'bench.localhost';
const CONNECTIONS = 32;
const WARM_UP_MS = 1_000;
const MEASURED_MS = 3_000;
const ROUNDS = 3;

export interface ProxyFigures {
  /** Medians of requests per second. */
  direct: number;
  proxied: number;
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
    const direct: number[] = [];
    const proxied: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      direct.push(Number(await firstLine(start('load', port))));
      proxied.push(Number(await firstLine(start('load', router.port))));
    }
    return { direct: median(direct), proxied: median(proxied) };
  } finally {
    upstream.kill();
    await stopProxy(directory);
    rmSync(directory, { recursive: true });
  }
}

function start(role: 'upstream' | 'load', port = 0): ChildProcess {
  const args = [fileURLToPath(import.meta.url), role, String(port)];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function firstLine(child: ChildProcess): Promise<string> {
  return String((await once(child.stdout!, 'data'))[0]);
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

function serve(): void {
  const body = JSON.stringify({ text: 'x'.repeat(1000) });
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const server = createServer((_request, response) => response.writeHead(200, headers).end(body));
  server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
}

async function load(port: number): Promise<void> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS });
  let done = 0;
  const line = async (): Promise<never> => {
    for (;;) {
      const { statusCode, body } = await pool.request({ path: '/', method: 'GET', headers: { host: HOST } });
      await body.text();
      if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
      done++;
    }
  };
  for (let n = 0; n < CONNECTIONS; n++) void line();
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
  const [before, started] = [done, performance.now()];
  await new Promise((resolve) => setTimeout(resolve, MEASURED_MS));
  console.log(Math.round(((done - before) * 1000) / (performance.now() - started)));
  process.exit(0);
}

const [role, port] = process.argv.slice(2);
if (import.meta.main) {
  if (role === 'upstream') serve();
  else if (role === 'load') await load(Number(port));
  else {
    const { direct, proxied } = await benchProxy();
    console.log(`direct ${direct}/s, through the proxy ${proxied}/s: ${(proxied / direct).toFixed(2)}`);
  }
}
