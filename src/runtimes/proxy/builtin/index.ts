import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { isWithin } from '#kernel/addresses.ts';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import { withStartLock } from '#kernel/start-lock.ts';
import { unsupportedCertificates } from '#runtimes/router.ts';
import type { CertificateStatus, RequestCounts, RouteEntry, Router, Upstream } from '#runtimes/router.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { ensureCompiled } from '#runtimes/tools/shim/compiled.ts';
import { readShim, readShimLog, replaceProcess, startShim, stopShim } from '#runtimes/tools/shim/index.ts';
import { askProxies, askProxy, isAway } from '#runtimes/proxy/builtin/control-client.ts';
import { addRequests, COUNTS_FOLDER, readLeftRequests, type Snapshot } from '#runtimes/proxy/builtin/request-counts.ts';
import { fingerprintOf } from '#runtimes/proxy/builtin/fingerprint.ts';
import { RETIRE, UP } from '#runtimes/proxy/builtin/protocol.ts';
import { connectionAdvice, openFilesLimit } from '#runtimes/proxy/descriptors.ts';
import { countOn } from '#runtimes/proxy/requests.ts';
import { DEFAULT_LIMITS } from '#runtimes/proxy/limits.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';
import type { ControlAnswer, ControlRequest, ProxyConfig, ProxyStatus } from '#runtimes/proxy/builtin/protocol.ts';

export interface RouterOptions {
  /** Folder of the proxy: its routes, its control socket, its shim with the log. */
  directory: string;
  /** Address to listen on. */
  host: string;
  /** Port to listen on; 0 lets the proxy choose one, which it keeps. */
  port: number;
  /** Name of the program: a proxy with another one is replaced. Default: hash of everything that it runs (`fingerprintOf`). */
  revision?: string;
  /** Milliseconds for requests and websockets under way in a replaced proxy (default 5 min). */
  retireMs?: number;
  /** Limits that differ from the defaults. */
  limits?: Partial<ProxyLimits>;
  /** Addresses and networks (CIDR) whose `X-Forwarded-*` headers count; none by default. */
  trustedProxies?: readonly string[];
  log(line: string): void;
}

/** Milliseconds until a proxy that died is running again under its shim. */
const AWAY_MS = 15_000;
const ENDING_MS = 10_000;
/** Milliseconds for the answer about requests. */
const COUNT_MS = 10_000;
const RETIRE_MS = 300_000;
/** File with the port that was chosen when the setting is 0. */
const PORT_FILE = 'port.json';

const isLoopback = (host: string): boolean => host === 'localhost' || isWithin(host, ['127.0.0.0/8', '::1']);

/** Warning for a proxy that other machines may reach although it cannot encrypt. */
const WITHOUT_HTTPS = (host: string): string =>
  `The built-in proxy listens on ${host} without HTTPS: other machines may reach it unencrypted. Install Caddy for HTTPS ` +
  '(apt-get install caddy, QUARTERDECK_PROXY=caddy), or set QUARTERDECK_PROXY_HOST=127.0.0.1.';

const isTypeScript = import.meta.url.endsWith('.ts');
const PROGRAM = new URL(isTypeScript ? './proxy-main.ts' : './proxy-main.js', import.meta.url);

/**
 * Starts the proxy of this node, or adopts the one that runs in the folder, with its routes. The proxy outlives this process; `close` only
 * detaches from it. Throws RuntimeError `failed` if it can't listen.
 */
export async function createRouter(options: RouterOptions): Promise<Router & { close(): Promise<void> }> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  const directory = realpathSync(options.directory);
  const { host, port, revision = fingerprintOf(fileURLToPath(PROGRAM)), retireMs = RETIRE_MS } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const config: ProxyConfig = {
    host,
    port,
    revision,
    retireMs,
    limits,
    trustedProxies: [...(options.trustedProxies ?? [])],
  };
  // Of several processes that start it at once, one does, and the others adopt it.
  const start = () => withStartLock(directory, () => startProxy(directory, config, options.log));
  const status = await start();
  if (!isLoopback(host)) options.log(WITHOUT_HTTPS(host));
  const advice = connectionAdvice(openFilesLimit(), limits.connections);
  if (advice) options.log(advice);
  removeCompiled(directory, config);
  return new ProxyRouter(directory, start, status);
}

/** Stops the proxy of a folder, if there is one; its routes stay for the next. */
export async function stopProxy(directory: string): Promise<void> {
  await stopShim(join(directory, 'shim'), ENDING_MS);
}

async function startProxy(directory: string, config: ProxyConfig, log: (line: string) => void): Promise<ProxyStatus> {
  const shim = join(directory, 'shim');
  const view = readShim(shim);
  if (view?.alive && view.state.listens) {
    const present = await untilUp(directory).catch((error: unknown) => {
      log(`The proxy in ${directory} is started anew: ${(error as Error).message}`);
    });
    if (present && isSame(present, config)) {
      log(`The proxy on port ${present.port} (pid ${present.pid}) is taken over with ${present.services} service(s).`);
      return present;
    }
    if (present && isThere(present, config)) return handOver(directory, config, present, log);
  }
  await stopShim(shim, ENDING_MS);
  const status = await startFresh(directory, config).catch(async (error: unknown) => {
    await stopShim(shim, ENDING_MS);
    throw new RuntimeError('failed', `The proxy does not start: ${(error as Error).message}`, error);
  });
  log(`The proxy listens on ${config.host}:${status.port} (pid ${status.pid}).`);
  return status;
}

/** Returns whether a proxy listens on the wanted host and port; a port of 0 is any. */
const isThere = ({ port, config }: ProxyStatus, wanted: ProxyConfig): boolean =>
  config.host === wanted.host && (wanted.port === 0 || wanted.port === port);

const isSame = (present: ProxyStatus, wanted: ProxyConfig): boolean =>
  isThere(present, wanted) && isDeepStrictEqual({ ...present.config, port: wanted.port }, wanted);

/** Folder with the compiled code of a release; those of earlier releases are removed when the next one is started. */
const compileCache = (directory: string, { revision }: ProxyConfig): string =>
  join(directory, 'compiled', encodeURIComponent(revision));

function removeCompiled(directory: string, { revision }: ProxyConfig): void {
  const folder = join(directory, 'compiled');
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder))
    if (name !== encodeURIComponent(revision)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** Command, arguments and environment of the proxy's process. */
const program = (directory: string, config: ProxyConfig) => ({
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', fileURLToPath(PROGRAM), directory, JSON.stringify(config)],
  env: { NODE_COMPILE_CACHE: compileCache(directory, config) },
});

/** Replaces the proxy by one of another release on the same address. Both share the listening socket until the old one is done. */
async function handOver(
  directory: string,
  config: ProxyConfig,
  old: ProxyStatus,
  log: (line: string) => void,
): Promise<ProxyStatus> {
  await ensureCompiled(compileCache(directory, config), [PROGRAM]);
  await replaceProcess(join(directory, 'shim'), {
    ...program(directory, config),
    ready: UP,
    timeoutMs: AWAY_MS,
    retire: RETIRE,
    retireMs: old.config.retireMs + ENDING_MS,
  });
  const status = await untilUp(directory, (found) => found.pid !== old.pid);
  log(`The proxy on port ${status.port} (pid ${status.pid}) takes over from that of another release (pid ${old.pid}).`);
  return status;
}

/** Starts a shim and the proxy in it; with port 0 on the previous port if that is free. */
async function startFresh(directory: string, config: ProxyConfig): Promise<ProxyStatus> {
  const last = config.port === 0 ? readJson<{ port: number }>(join(directory, PORT_FILE))?.port : undefined;
  const start = (port: number) =>
    startShim({
      ...program(directory, config),
      directory: join(directory, 'shim'),
      compileCache: compileCache(directory, config),
      programs: [PROGRAM],
      // A killed proxy restarts at once: connections wait for it in the socket.
      backoff: { firstMs: 10, maxMs: 5_000, resetAfterMs: 60_000 },
      listen: { host: config.host, port },
    });
  await start(last ?? config.port).catch((error: NodeJS.ErrnoException) => {
    if (last === undefined || error.code !== 'EADDRINUSE') throw error;
    return start(0);
  });
  const status = await untilUp(directory);
  writeAtomically(join(directory, PORT_FILE), JSON.stringify({ port: status.port }));
  return status;
}

/** Waits until a serving proxy answers; throws RuntimeError `failed` with its last words if it ends instead. */
async function untilUp(directory: string, meant = (_found: ProxyStatus) => true): Promise<ProxyStatus> {
  const shim = join(directory, 'shim');
  for (const end = Date.now() + AWAY_MS; ;) {
    try {
      const answer = await askProxy(directory, { do: 'status' }, 2_000);
      if (answer.ok && meant(answer.status!)) return answer.status!;
    } catch (error) {
      if (!isAway(error)) throw error;
    }
    const view = readShim(shim);
    if (Date.now() > end || (view?.state.restarts ?? 0) > 3) break;
    await sleep(20);
  }
  throw new RuntimeError('failed', await lastWords(shim));
}

async function lastWords(shim: string): Promise<string> {
  const lines = (await readShimLog(shim, 5)).filter((line) => line.stream === 'stderr');
  return lines.at(-1)?.text ?? 'it says nothing.';
}

class ProxyRouter implements Router {
  readonly #directory: string;
  readonly #start: () => Promise<ProxyStatus>;
  #port: number;
  #closed = false;

  constructor(directory: string, start: () => Promise<ProxyStatus>, status: ProxyStatus) {
    this.#directory = directory;
    this.#start = start;
    this.#port = status.port;
  }

  get port(): number {
    return this.#port;
  }

  async set(serviceId: string, generation: number, routes: RouteEntry[]): Promise<void> {
    await this.#ask({ do: 'set', serviceId, generation, routes }, 10_000);
  }

  async remove(serviceId: string): Promise<void> {
    await this.#ask({ do: 'remove', serviceId }, 10_000);
  }

  async drained(upstreams: Upstream[], timeoutMs: number): Promise<void> {
    await this.#ask({ do: 'drained', upstreams, timeoutMs }, timeoutMs + 10_000);
  }

  async certificates(hosts: string[]): Promise<CertificateStatus[]> {
    return unsupportedCertificates(hosts);
  }

  requests(): Promise<RequestCounts | null> {
    return countOn<Snapshot>(join(this.#directory, COUNTS_FOLDER), async (last) => {
      const answers = await askProxies(this.#directory, { do: 'requests' }, COUNT_MS).catch((error: unknown) => {
        throw new RuntimeError('failed', `The proxy does not answer: ${(error as Error).message}`, error);
      });
      const living = answers.flatMap((answer) => (answer.ok && answer.requests ? [answer.requests] : []));
      // Read last: a process that ended meanwhile has left its counts by now.
      return addRequests(last, [...living, ...readLeftRequests(this.#directory, last)]);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  /** Sends a request until it is answered: a proxy that is away comes back, restarted by its shim or from here. */
  async #ask(request: ControlRequest, timeoutMs: number): Promise<void> {
    for (const end = Date.now() + AWAY_MS; ;) {
      if (this.#closed) throw new RuntimeError('failed', 'The router is closed.');
      try {
        return assertOk(await askProxy(this.#directory, request, timeoutMs));
      } catch (error) {
        if (error instanceof RuntimeError) throw error;
        if (!isAway(error) || Date.now() > end)
          throw new RuntimeError('failed', `The proxy does not answer: ${(error as Error).message}`, error);
      }
      if (!readShim(join(this.#directory, 'shim'))?.alive) this.#port = (await this.#start()).port;
      else await sleep(50);
    }
  }
}

function assertOk(answer: ControlAnswer): void {
  if (!answer.ok) throw new RuntimeError(answer.code, answer.message);
}
