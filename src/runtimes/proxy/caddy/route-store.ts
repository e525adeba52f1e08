import { join } from 'node:path';
import { RuntimeError } from '#runtimes/runtime.ts';
import { dialOf } from '#runtimes/proxy/caddy/config.ts';
import { RouteFiles, type ServiceRoutes } from '#runtimes/proxy/route-files.ts';
import type { RouteEntry } from '#runtimes/router.ts';
import { readJson, writeAtomically } from '#runtimes/tools/shim/state.ts';

/** Host name in the form that routes are compared in: lower case, without a final dot. */
const normalize = (host: string): string => host.toLowerCase().replace(/\.$/, '');

/** The routes of all services, in memory and on disk. A change is checked and written in one step of the event loop. */
export class RouteStore {
  readonly #files: RouteFiles;
  readonly #sinceFile: string;
  #services = new Map<string, ServiceRoutes>();
  /** Owner of each host. */
  #owners = new Map<string, string>();
  /** When each host began to ask for a certificate. */
  #since = new Map<string, number>();
  /** Upstreams that routes named when Caddy was last configured. */
  #left = new Set<string>();

  constructor(routesDirectory: string, directory: string, onDamage: (message: string) => void) {
    this.#files = new RouteFiles(routesDirectory);
    this.#sinceFile = join(directory, 'certificates.json');
    this.#since = new Map(readJson<[string, number][]>(this.#sinceFile) ?? []);
    this.reload(onDamage);
  }

  get size(): number {
    return this.#services.size;
  }

  /** All routes by host, in the form that hosts are compared in: the order is the same in every process. */
  get routes(): RouteEntry[] {
    const all = [...this.#services.values()].flatMap(({ routes }) => routes);
    return all.sort((a, b) => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0));
  }

  get upstreams(): Set<string> {
    return new Set(this.routes.flatMap((route) => route.upstreams.map(dialOf)));
  }

  /** Upstreams that lost their route since `settled` was called last. */
  get left(): ReadonlySet<string> {
    return this.#left;
  }

  since(host: string): number {
    return this.#since.get(normalize(host)) ?? 0;
  }

  /** Reads everything from disk again: another process has changed it. */
  reload(onDamage: (message: string) => void): void {
    this.#services = new Map();
    this.#owners = new Map();
    for (const service of this.#files.readAll(onDamage))
      this.#take({ ...service, routes: service.routes.map(normalized) });
  }

  /** Replaces the routes of a service. Throws RuntimeError `superseded`, or `refused` if a host belongs to another service. */
  set(serviceId: string, generation: number, routes: RouteEntry[]): void {
    // From disk: another process may have written it.
    const present = this.#files.read(serviceId);
    if (present && present.generation > generation)
      throw new RuntimeError(
        'superseded',
        `The routes of the service have generation ${present.generation} already; ${generation} is older.`,
      );
    for (const { host } of routes) {
      const owner = this.#owners.get(normalize(host));
      if (owner !== undefined && owner !== serviceId)
        throw new RuntimeError('refused', `The host name ${host} belongs to another service (${owner}).`);
    }
    const service = { serviceId, generation, routes: routes.map(normalized) };
    this.#files.write(service);
    this.#drop(serviceId);
    this.#take(service);
    this.#noteCertificates();
  }

  remove(serviceId: string): void {
    this.#files.delete(serviceId);
    this.#drop(serviceId);
    this.#noteCertificates();
  }

  /** Forgets the upstreams that were given: a configuration that still counts their requests is loaded. */
  settled(upstreams: Iterable<string>): void {
    for (const dial of upstreams) this.#left.delete(dial);
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

const normalized = (route: RouteEntry): RouteEntry => ({ ...route, host: normalize(route.host) });
