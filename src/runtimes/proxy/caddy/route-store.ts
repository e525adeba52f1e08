import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import { withStartLock } from '#kernel/start-lock.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { dialOf } from '#runtimes/proxy/caddy/config.ts';
import { comparedHost, RouteFiles, type OwnedRoute, type ServiceRoutes } from '#runtimes/proxy/route-files.ts';
import type { RouteEntry } from '#runtimes/router.ts';

/**
 * Routes of all services, in memory and on disk. A change is checked against the disk and written there while no other process of this
 * machine changes routes: two processes never give one host to two services.
 */
export class RouteStore {
  readonly #files: RouteFiles;
  readonly #directory: string;
  readonly #sinceFile: string;
  readonly #changeFile: string;
  readonly #onDamage: (message: string) => void;
  /** Last change that this process knows of, made by any process. */
  #change: string | null = null;
  #services = new Map<string, ServiceRoutes>();
  /** Owner of each host. */
  #owners = new Map<string, string>();
  /** Time at which each host began to ask for a certificate, in milliseconds since 1970. */
  #since = new Map<string, number>();
  /** Upstreams that lost their route since Caddy was last configured. */
  #left = new Set<string>();

  constructor(routesDirectory: string, directory: string, onDamage: (message: string) => void) {
    this.#files = new RouteFiles(routesDirectory);
    this.#directory = directory;
    this.#sinceFile = join(directory, 'certificates.json');
    this.#changeFile = join(directory, 'change.json');
    this.#onDamage = onDamage;
    this.reload();
  }

  get size(): number {
    return this.#services.size;
  }

  get serviceIds(): string[] {
    return [...this.#services.keys()];
  }

  /** All routes by host, in the form used for comparison: the order is the same in every process. */
  get routes(): OwnedRoute[] {
    const all = [...this.#services.values()].flatMap(({ serviceId, routes }) =>
      routes.map((route) => ({ ...route, serviceId })),
    );
    return all.sort((a, b) => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0));
  }

  get upstreams(): Set<string> {
    return new Set(this.routes.flatMap((route) => route.upstreams.map(dialOf)));
  }

  /** Upstreams that lost their route since `settled` was called last. */
  get left(): ReadonlySet<string> {
    return this.#left;
  }

  /** Returns the times at which hosts began to ask for a certificate, in any process; null for hosts that ask for none. */
  async since(hosts: readonly string[]): Promise<Map<string, number | null>> {
    const since = this.#parseSince(await readFile(this.#sinceFile, 'utf8').catch(noneYet));
    return new Map(hosts.map((host) => [host, since.get(comparedHost(host)) ?? null]));
  }

  /** Reads everything from disk again: another process has changed it. */
  reload(): void {
    this.#since = existsSync(this.#sinceFile) ? this.#parseSince(readFileSync(this.#sinceFile, 'utf8')) : new Map();
    this.#services = new Map();
    this.#owners = new Map();
    for (const service of this.#files.readAll(this.#onDamage))
      this.#take({ ...service, routes: service.routes.map(normalized) });
  }

  /** Replaces the routes of a service. Throws RuntimeError `superseded`, or `refused` if a host belongs to another service. */
  set(serviceId: string, generation: number, routes: RouteEntry[]): Promise<void> {
    const service = { serviceId, generation, routes: routes.map(normalized) };
    return this.#whileLocked(() => {
      this.#check(service);
      this.#noteChange();
      this.#files.write(service);
      this.#drop(serviceId);
      this.#take(service);
      this.#noteCertificates();
    });
  }

  remove(serviceId: string): Promise<void> {
    return this.#whileLocked(() => {
      this.#noteChange();
      this.#files.delete(serviceId);
      this.#drop(serviceId);
      this.#noteCertificates();
    });
  }

  /** Forgets the given upstreams: a configuration that still counts their requests is loaded. */
  settled(upstreams: Iterable<string>): void {
    for (const dial of upstreams) this.#left.delete(dial);
  }

  #parseSince(text: string): Map<string, number> {
    try {
      return new Map(JSON.parse(text) as [string, number][]);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.#onDamage(`${this.#sinceFile} cannot be read: ${error.message}`);
      return new Map();
    }
  }

  /** Makes a change, based on the disk, while no other process makes one. */
  #whileLocked(change: () => void): Promise<void> {
    return withStartLock(this.#directory, async () => {
      const last = readJson<string>(this.#changeFile);
      if (last === null || last !== this.#change) this.reload();
      this.#change = last;
      change();
    });
  }

  /** Tells other processes, before the change, that their routes are out of date. */
  #noteChange(): void {
    const change = randomUUID();
    writeAtomically(this.#changeFile, JSON.stringify(change));
    this.#change = change;
  }

  #check({ serviceId, generation, routes }: ServiceRoutes): void {
    // Read from disk: the built-in proxy may have written it.
    const present = this.#files.read(serviceId);
    if (present && present.generation > generation)
      throw new RuntimeError(
        'superseded',
        `The routes of the service have generation ${present.generation} already; ${generation} is older.`,
      );
    for (const { host } of routes) {
      const owner = this.#owners.get(host);
      if (owner !== undefined && owner !== serviceId)
        throw new RuntimeError('refused', `The host name ${host} belongs to another service (${owner}).`);
    }
  }

  #take(service: ServiceRoutes): void {
    this.#services.set(service.serviceId, service);
    for (const { host } of service.routes) this.#owners.set(host, service.serviceId);
  }

  #drop(serviceId: string): void {
    for (const { host, upstreams } of this.#services.get(serviceId)?.routes ?? []) {
      this.#owners.delete(host);
      for (const upstream of upstreams) this.#left.add(dialOf(upstream));
    }
    this.#services.delete(serviceId);
  }

  #noteCertificates(): void {
    const asking = new Set(this.routes.filter((route) => route.certificate).map(({ host }) => host));
    const added = [...asking].filter((host) => !this.#since.has(host));
    const gone = [...this.#since.keys()].filter((host) => !asking.has(host));
    if (added.length === 0 && gone.length === 0) return;
    for (const host of added) this.#since.set(host, Date.now());
    for (const host of gone) this.#since.delete(host);
    writeAtomically(this.#sinceFile, JSON.stringify([...this.#since]));
  }
}

const normalized = (route: RouteEntry): RouteEntry => ({ ...route, host: comparedHost(route.host) });

/** Returns empty content for a file of pairs that was not written yet. */
function noneYet(error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return '[]';
  throw error;
}
