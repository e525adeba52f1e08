/** The proxies that are measured beside each other: ours, and nginx and Caddy set up by hand with as little as they need. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { askProxy } from '#runtimes/proxy/builtin/control-client.ts';
import { createRouter, stopProxy } from '#runtimes/proxy/builtin/index.ts';
import { createCaddyRouter, stopCaddyProxy } from '#runtimes/proxy/caddy/index.ts';
import { findCaddy } from '#runtimes/proxy/caddy/program.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';

export const HOST = 'bench.localhost';
/** The bench's visitors all come from few addresses. */
const LIMITS = { connectionsPerAddress: 20_000, headMs: 300_000, idleMs: 300_000 };
const NGINX_CONNECTIONS = 12_000;

export interface Contestant {
  name: string;
  port: number;
  /** Processes that serve; empty for the upstream itself. */
  pids: number[];
  end(): Promise<void>;
}

const routesTo = (port: number) => [
  { host: HOST, protocol: 'HTTP' as const, upstreams: [{ address: '127.0.0.1', port }] },
];

export async function startBuiltin(directory: string, upstream: number): Promise<Contestant> {
  const router = await createRouter({ directory, host: '127.0.0.1', port: 0, limits: LIMITS, log: () => undefined });
  await router.set('bench', 1, routesTo(upstream));
  const answer = await askProxy(directory, { do: 'status' }, 5_000);
  if (!answer.ok) throw new Error(answer.message);
  const { pid } = answer.status!;
  return { name: 'built-in proxy', port: router.port, pids: [pid], end: () => stopProxy(directory) };
}

/** Returns null where Caddy is not installed. */
export async function startCaddyAdapter(directory: string, upstream: number): Promise<Contestant | null> {
  const program = await findCaddy();
  if (!program) return null;
  mkdirSync(directory);
  const router = await createCaddyRouter({
    directory,
    program,
    host: '127.0.0.1',
    port: 0,
    https: { port: 1, directoryUrl: 'https://127.0.0.1:1/dir', email: '', rootsFile: '' },
    trustedProxies: [],
    limits: LIMITS,
    log: () => undefined,
  });
  await router.set('bench', 1, routesTo(upstream));
  const name = `Caddy ${program.version} as Quarterdeck runs it`;
  return { name, port: router.port, pids: [router.pid!], end: () => stopCaddyProxy(directory) };
}

/** Returns null where Caddy is not installed. */
export async function startCaddyByHand(directory: string, upstream: number): Promise<Contestant | null> {
  const program = await findCaddy();
  if (!program) return null;
  mkdirSync(directory);
  const port = await freePort();
  const file = join(directory, 'Caddyfile');
  writeFileSync(
    file,
    `{\nadmin off\nauto_https off\n}\nhttp://${HOST}:${port} {\nreverse_proxy 127.0.0.1:${upstream}\n}\n`,
  );
  const child = spawn(program.path, ['run', '--adapter', 'caddyfile', '--config', file], {
    stdio: 'ignore',
    env: { HOME: directory },
  });
  await untilListening(port);
  return { name: `Caddy ${program.version} by hand`, port, pids: [child.pid!], end: () => stopped(child) };
}

/** Returns null where nginx is not installed. */
export async function startNginxByHand(directory: string, upstream: number): Promise<Contestant | null> {
  const program = findProgram('nginx', '/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin');
  if (program === null) return null;
  mkdirSync(directory);
  const port = await freePort();
  const file = join(directory, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off;
worker_processes auto;
worker_rlimit_nofile ${2 * NGINX_CONNECTIONS > 20_000 ? 20_000 : 2 * NGINX_CONNECTIONS};
pid ${directory}/nginx.pid;
error_log stderr error;
events { worker_connections ${NGINX_CONNECTIONS}; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  client_header_timeout 300s;
  keepalive_timeout 300s;
  keepalive_requests 1000000000;
  upstream bench { server 127.0.0.1:${upstream}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    server_name ${HOST};
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}
`,
  );
  const child = spawn(program, ['-c', file, '-p', directory], { stdio: ['ignore', 'ignore', 'inherit'] });
  await untilListening(port);
  const workers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number);
  return { name: 'nginx by hand', port, pids: [child.pid!, ...workers], end: () => stopped(child) };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function untilListening(port: number): Promise<void> {
  for (const end = Date.now() + 20_000; ;) {
    const socket = connect(port, '127.0.0.1');
    const isUp = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isUp) return;
    if (Date.now() > end) throw new Error(`Nothing listens on port ${port}.`);
    await sleep(50);
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Processor time that processes have used, in microseconds; undefined where the machine does not tell. */
export function processorTime(pids: readonly number[]): number | undefined {
  if (pids.length === 0 || !existsSync('/proc/self/stat')) return undefined;
  const ticks = pids.map((pid) => {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  });
  // Linux counts in hundredths of a second.
  return ticks.reduce((sum, one) => sum + one, 0) * 10_000;
}

/** Memory of processes in MiB, shared pages in parts (PSS); undefined where the machine does not tell. */
export function memory(pids: readonly number[]): number | undefined {
  if (pids.length === 0 || !existsSync('/proc/self/smaps_rollup')) return undefined;
  const kib = pids.map((pid) => Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))![1]));
  return kib.reduce((sum, one) => sum + one, 0) / 1024;
}
