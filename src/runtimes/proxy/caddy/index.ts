import { randomUUID } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import { withStartLock } from '#kernel/start-lock.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { CertificateStatus, RequestCounts, RouteEntry, Router, Upstream } from '#runtimes/router.ts';
import { AdminApi, isAway, type PresentConfig, type UpstreamCount } from '#runtimes/proxy/caddy/admin.ts';
import { CertificateReader } from '#runtimes/proxy/caddy/certificates.ts';
import { bracketed, buildConfig, dialOf, RETIRING, type HttpsOptions } from '#runtimes/proxy/caddy/config.ts';
import * as processes from '#runtimes/proxy/caddy/process.ts';
import { featuresOf, type CaddyProgram } from '#runtimes/proxy/caddy/program.ts';
import {
  createRequestFolder,
  readRequestLog,
  requestFolder,
  type LogPosition,
} from '#runtimes/proxy/caddy/request-log.ts';
import { countOn } from '#runtimes/proxy/requests.ts';
import { DEFAULT_LIMITS, type ProxyLimits } from '#runtimes/proxy/limits.ts';
import { RouteStore } from '#runtimes/proxy/caddy/route-store.ts';

export interface CaddyOptions {
  /** Folder of the node's proxy: routes in `routes/`, everything of Caddy in `caddy/`. */
  directory: string;
  program: CaddyProgram;
  /** Address that Caddy listens on. */
  host: string;
  /** Port of HTTP; 0 takes a free one, which is kept. */
  port: number;
  https: HttpsOptions;
  /** Networks of proxies in front of this one whose X-Forwarded-* headers count, CIDR. */
  trustedProxies: readonly string[];
  /** Limits that differ from the defaults; Caddy has none for numbers of connections and header lines. */
  limits?: Partial<ProxyLimits>;
  /**
   * True if Caddy writes the reports of Go's HTTP server about connections to `server.log`; false by default. They include panics while a
   * request was served. Costs time for each request, and a change of configuration resets new connections more often.
   */
  reportsServer?: boolean;
  log(line: string): void;
}

/** Milliseconds between two queries of the request counts. */
const DRAIN_LOOK_MS = 40;
/** Number of attempts to load a configuration while other processes load theirs. */
const ATTEMPTS = 10;
/** Milliseconds before the next attempt to serve HTTPS after Caddy itself refused; its port is checked more often. */
const HTTPS_RETRY_MS = 300_000;

const caddyFolder = (directory: string): string => join(directory, 'caddy');
const portFile = (directory: string): string => join(directory, 'port.json');

/** Starts Caddy as this node's proxy, or adopts the one that runs in the folder. Throws RuntimeError `failed`. */
export async function createCaddyRouter(options: CaddyOptions): Promise<CaddyRouter> {
  mkdirSync(caddyFolder(options.directory), { recursive: true, mode: 0o700 });
  createRequestFolder(caddyFolder(options.directory));
  const router = new CaddyRouter({ ...options, directory: realpathSync(options.directory) });
  await router.start();
  return router;
}

/** Stops Caddy in a folder, if it runs there; its routes stay for the next. */
export const stopCaddyProxy = (directory: string): Promise<void> => processes.stopCaddy(caddyFolder(directory));

/** `Router` on Caddy. Every change builds the whole configuration from the stored routes and loads it. */
export class CaddyRouter implements Router {
  readonly #options: CaddyOptions;
  readonly #directory: string;
  readonly #admin: AdminApi;
  readonly #routes: RouteStore;
  readonly #certificates: CertificateReader;
  #port: number;
  /** Configuration that this process loaded last. */
  #revision = '';
  /** State of HTTPS in the loaded configuration, and why it could not listen. */
  #https: { listens: boolean; error: string | null } = { listens: false, error: null };
  /** Earliest time of the next attempt to serve HTTPS after a failure, by `performance.now()`. */
  #httpsAgainAt = 0;
  /** Load under way, and the one that follows it for changes made meanwhile. */
  #loading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #closed = false;

  constructor(options: CaddyOptions) {
    this.#options = options;
    this.#directory = caddyFolder(options.directory);
    this.#admin = new AdminApi(this.#directory);
    this.#routes = new RouteStore(join(options.directory, 'routes'), this.#directory, options.log);
    this.#certificates = new CertificateReader(this.#directory, options.https.directoryUrl, options.log);
    this.#port = options.port;
  }

  get port(): number {
    return this.#port;
  }

  /** Process id of Caddy, null while it is not running. */
  get pid(): number | null {
    return processes.caddyPid(this.#directory);
  }

  /** Starts or adopts Caddy. Of several processes that start it at once, one does, and the others adopt it. */
  start(): Promise<void> {
    return withStartLock(this.#options.directory, () => this.#start());
  }

  async #start(): Promise<void> {
    const { directory, program, host, port, log } = this.#options;
    const last = readJson<{ port: number }>(portFile(directory))?.port;
    this.#port = port === 0 ? (last ?? 0) : port;
    if (processes.isRunning(this.#directory, program)) {
      const adopted = await this.#adopt().catch((error: unknown) => {
        log(`Caddy in ${this.#directory} is started anew: ${(error as Error).message}`);
        return false;
      });
      if (adopted) return;
    }
    await processes.stopCaddy(this.#directory);
    this.#port = await processes.claimPort(host, this.#port).catch((error: NodeJS.ErrnoException) => {
      if (port === 0 && error.code === 'EADDRINUSE') return processes.claimPort(host, 0);
      throw new RuntimeError('failed', `The proxy does not start: ${error.message}`, error);
    });
    await this.#launch();
    log(`The proxy (Caddy ${program.version}) listens on ${host}:${this.#port} (pid ${this.pid}).`);
  }

  async set(serviceId: string, generation: number, routes: RouteEntry[]): Promise<void> {
    this.#refuseClosed();
    for (const route of routes) check(route);
    await this.#routes.set(serviceId, generation, routes);
    await this.#apply();
  }

  async remove(serviceId: string): Promise<void> {
    this.#refuseClosed();
    await this.#routes.remove(serviceId);
    await this.#apply();
  }

  async drained(upstreams: Upstream[], timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    // Two quiet checks are needed: a request that was just read may not be counted yet.
    for (let quiet = 0; quiet < 2;) {
      const count = await this.#underWay(upstreams, end - performance.now()).catch((error: unknown) => {
        // Close to the deadline the error only means that the time is over.
        if (performance.now() < end - DRAIN_LOOK_MS) throw error;
      });
      quiet = count === 0 ? quiet + 1 : 0;
      const left = end - performance.now();
      if (left <= 0) return;
      if (quiet < 2) await sleep(Math.min(left, DRAIN_LOOK_MS));
    }
  }

  async certificates(hosts: string[]): Promise<CertificateStatus[]> {
    await this.#retryHttps();
    const found = await this.#certificates.read(await this.#routes.since(hosts));
    const { error } = this.#https;
    if (error === null) return found;
    return found.map((status) => ({ ...status, state: 'FAILED', lastError: error }));
  }

  requests(): Promise<RequestCounts | null> {
    return countOn<LogPosition>(requestFolder(this.#directory), (last) =>
      readRequestLog(this.#directory, last, this.#routes.serviceIds),
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#loading?.catch(() => undefined);
  }

  /** Adopts the running Caddy and loads the changes since it was configured. */
  async #adopt(): Promise<boolean> {
    const { host, port, program, log } = this.#options;
    await processes.untilUp(this.#directory);
    const stored = readJson<Stored>(processes.configFile(this.#directory));
    const runs = stored && listenOf(stored, 'http');
    if (runs !== `${bracketed(host)}:${this.#port}` && !(port === 0 && runs)) {
      if (port !== 0) await processes.claimPort(host, port);
    } else if (port === 0) this.#port = Number(runs.slice(runs.lastIndexOf(':') + 1));
    const { revision } = await this.#admin.present();
    await this.#learnHttps();
    const wanted = this.#build(revision, [], true);
    if (
      stored &&
      stored.admin['@id'] === revision &&
      isDeepStrictEqual(withoutRetiring(stored), withoutRetiring(wanted))
    )
      this.#revision = revision;
    else await this.#load();
    this.#keepPort();
    log(
      `The proxy on port ${this.#port} (pid ${this.pid}, Caddy ${program.version}) is taken over with ${this.#routes.size} service(s).`,
    );
    return true;
  }

  async #launch(): Promise<void> {
    const { https } = this.#options;
    const problem = await this.#httpsProblem();
    const write = (secure: boolean) => {
      this.#revision = randomUUID();
      const config = this.#build(this.#revision, [], secure);
      this.#https = { listens: listenOf(config, 'https') !== undefined, error: null };
      writeAtomically(processes.configFile(this.#directory), JSON.stringify(config));
    };
    write(problem === null);
    try {
      await processes.startCaddy(this.#directory, this.#options.program);
    } catch (error) {
      if (!this.#https.listens) throw error;
      write(false);
      await processes.startCaddy(this.#directory, this.#options.program);
      this.#https.error = `HTTPS cannot be served on port ${https.port}: ${(error as Error).message}`;
    }
    this.#https.error ??= problem;
    this.#keepPort();
  }

  #keepPort(): void {
    writeAtomically(portFile(this.#options.directory), JSON.stringify({ port: this.#port }));
  }

  /** Loads the stored routes. Changes that come while a load is under way share the one after it. */
  #apply(): Promise<void> {
    if (!this.#loading) return (this.#loading = this.#loadWaiting().finally(() => (this.#loading = undefined)));
    return (this.#next ??= this.#loading
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.#apply();
      }));
  }

  /** Loads, and waits for a Caddy that is away: its shim restarts it, or this process does. */
  async #loadWaiting(): Promise<void> {
    for (const end = Date.now() + processes.AWAY_MS; ;) {
      this.#refuseClosed();
      try {
        return await this.#load();
      } catch (error) {
        if (!isAway(error)) throw error;
        if (Date.now() > end)
          throw new RuntimeError('failed', `Caddy does not answer: ${(error as Error).message}`, error);
      }
      if (!processes.isAlive(this.#directory)) await this.start();
      else await sleep(50);
    }
  }

  async #load(): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const present = await this.#admin.present();
      if (present.revision !== this.#revision) {
        this.#routes.reload();
        await this.#learnHttps();
      }
      const counts = await this.#admin.counts();
      if (await this.#replace(present, counts)) return;
    }
    throw new RuntimeError('failed', `Other processes changed the configuration of Caddy ${ATTEMPTS} times meanwhile.`);
  }

  /** Asks Caddy whether it serves HTTPS: while it does, its port is not free, and another process may have configured it. */
  async #learnHttps(): Promise<void> {
    const listens = (await this.#admin.httpsPort()) === this.#options.https.port;
    this.#https = { listens, error: listens ? null : this.#https.error };
  }

  /** Retries to serve HTTPS if its port is free by now. */
  async #retryHttps(): Promise<void> {
    // A load under way retries HTTPS itself.
    if (this.#https.error === null || this.#loading || this.#closed || performance.now() < this.#httpsAgainAt) return;
    this.#loading = this.#tryHttps()
      .catch((error: unknown) => {
        this.#options.log(`HTTPS is not tried again now: ${(error as Error).message}`);
      })
      .finally(() => (this.#loading = undefined));
    await this.#loading;
  }

  async #tryHttps(): Promise<void> {
    const present = await this.#admin.present();
    if (present.revision !== this.#revision) {
      this.#routes.reload();
      await this.#learnHttps();
    }
    if (this.#https.listens || !this.#wantsHttps() || (await this.#httpsProblem()) !== null) return;
    try {
      await this.#replaceWith(present, await this.#admin.counts(), true);
    } catch (error) {
      // The previous configuration stays active: loading it again would only close resting connections.
      this.#httpsAgainAt = performance.now() + HTTPS_RETRY_MS;
      throw error;
    }
  }

  #wantsHttps(): boolean {
    return this.#routes.routes.some((route) => route.certificate);
  }

  /** Loads a configuration; without HTTPS if its port cannot be listened on. Returns false if another change came first. */
  async #replace(present: PresentConfig, counts: UpstreamCount[]): Promise<boolean> {
    const problem = await this.#httpsProblem();
    const replaced = await this.#replaceWith(present, counts, problem === null).catch(async (error: unknown) => {
      if (problem !== null || this.#https.listens || isAway(error) || !this.#wantsHttps()) throw error;
      const done = await this.#replaceWith(present, counts, false);
      if (done)
        this.#https.error = `HTTPS cannot be served on port ${this.#options.https.port}: ${(error as Error).message}`;
      return done;
    });
    if (replaced && problem !== null) this.#https.error = problem;
    return replaced;
  }

  async #replaceWith(present: PresentConfig, counts: UpstreamCount[], secure: boolean): Promise<boolean> {
    const left = [...this.#routes.left];
    const named = this.#routes.upstreams;
    const busy = counts.filter((one) => one.num_requests > 0).map(({ address }) => address);
    const retiring = [...new Set([...left, ...busy])].filter((dial) => !named.has(dial));
    const revision = randomUUID();
    const config = this.#build(revision, retiring, secure);
    if (!(await this.#admin.replace(config, present))) return false;
    // Each process writes the file after its change; a Caddy that dies in between is configured by the next change.
    writeAtomically(processes.configFile(this.#directory), JSON.stringify(config));
    this.#revision = revision;
    this.#https = { listens: listenOf(config, 'https') !== undefined, error: null };
    this.#routes.settled(left);
    return true;
  }

  #build(revision: string, retiring: string[], secure: boolean): Stored {
    const { host, https, trustedProxies, program, limits, reportsServer = false } = this.#options;
    return buildConfig({
      revision,
      directory: this.#directory,
      host,
      port: this.#port,
      https: secure ? https : null,
      trustedProxies,
      features: featuresOf(program),
      reportsServer,
      limits: { ...DEFAULT_LIMITS, ...limits },
      routes: this.#routes.routes,
      retiring,
    }) as Stored;
  }

  /** Returns the reason why HTTPS cannot begin now; null while it is served, and if no host asks for it. */
  async #httpsProblem(): Promise<string | null> {
    const { host, https } = this.#options;
    if (this.#https.listens || !this.#wantsHttps()) return null;
    try {
      await processes.claimPort(host, https.port);
      return null;
    } catch (error) {
      return `HTTPS cannot be served on port ${https.port}: ${(error as Error).message}`;
    }
  }

  /** Returns the requests under way to upstreams; none while Caddy is away, as they ended with it. */
  async #underWay(upstreams: Upstream[], timeoutMs: number): Promise<number> {
    const whole = new Set(upstreams.filter(({ port }) => port === 0).map((one) => dialOf(one).replace(/:0$/, '')));
    const dials = new Set(upstreams.map(dialOf));
    try {
      const counts = await this.#admin.counts(timeoutMs);
      return counts
        .filter(({ address }) => dials.has(address) || whole.has(address.slice(0, address.lastIndexOf(':'))))
        .reduce((sum, { num_requests }) => sum + num_requests, 0);
    } catch (error) {
      if (isAway(error)) return 0;
      throw error;
    }
  }

  #refuseClosed(): void {
    if (this.#closed) throw new RuntimeError('failed', 'The router is closed.');
  }
}

/** Parts of a stored configuration that this program reads. */
interface Stored {
  admin: { '@id': string };
  apps: { http: { servers: Record<string, { listen: string[]; routes: { '@id'?: string }[] } | undefined> } };
}

const listenOf = ({ apps }: Stored, server: string): string | undefined => apps.http.servers[server]?.listen[0];

/** Returns a configuration without retiring upstreams, which come and go with their requests. */
function withoutRetiring(config: Stored): Stored {
  const servers = Object.entries(config.apps.http.servers).map(([name, server]) => [
    name,
    { ...server, routes: server!.routes.filter((route) => route['@id'] !== RETIRING) },
  ]);
  return { ...config, apps: { ...config.apps, http: { ...config.apps.http, servers: Object.fromEntries(servers) } } };
}

/** Refuses a host or address that Caddy would interpret differently: the configuration would fail for all services. */
function check({ host, upstreams }: RouteEntry): void {
  if (!/^[a-z0-9]([a-z0-9._-]*[a-z0-9])?\.?$/i.test(host) || host.length > 253)
    throw new RuntimeError('refused', `The route's host ${host} must be a host name, such as shop.example.com.`);
  for (const { address, port } of upstreams)
    if (!/^[a-z0-9.:_-]+$/i.test(address) || !Number.isInteger(port) || port < 1 || port > 65535)
      throw new RuntimeError('refused', `The upstream ${address}:${port} of ${host} must be an address with a port.`);
}
