import type { RouteEntry } from '#runtimes/router.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { emptyTally, type Tally } from '#runtimes/tools/tally.ts';
import type { ServiceRoutes } from '#runtimes/proxy/route-files.ts';
import type { Upstreams, UpstreamState } from '#runtimes/proxy/builtin/upstreams.ts';

/** Host with the upstreams of its requests. */
export class HostRoute {
  readonly serviceId: string;
  readonly protocol: RouteEntry['protocol'];
  readonly upstreams: UpstreamState[];
  /** Requests of the service so far, over all its hosts and changes. */
  readonly requests: Tally;
  #turn = 0;

  constructor(serviceId: string, protocol: RouteEntry['protocol'], upstreams: UpstreamState[], requests: Tally) {
    this.serviceId = serviceId;
    this.protocol = protocol;
    this.upstreams = upstreams;
    this.requests = requests;
  }

  /** Returns the next upstream in turn that was not tried yet; those that just refused a connection come last. */
  pick(tried: readonly UpstreamState[]): UpstreamState | undefined {
    const count = this.upstreams.length;
    if (count === 1 && tried.length === 0) return this.upstreams[0];
    let last: UpstreamState | undefined;
    for (let step = 0; step < count; step++) {
      const upstream = this.upstreams[this.#turn++ % count]!;
      if (tried.includes(upstream)) continue;
      if (!upstream.isPassedOver()) return upstream;
      last ??= upstream;
    }
    return last;
  }
}

/** Converts a host name to the form of the lookup: lower case, without port and trailing dot. */
function normalizeHost(header: string): string {
  const end = header.startsWith('[') ? header.indexOf(']') + 1 : header.indexOf(':');
  const host = (end > 0 ? header.slice(0, end) : header).toLowerCase();
  return host.endsWith('.') ? host.slice(0, -1) : host;
}

/** Table of hosts and their upstreams. A change of a service replaces all its hosts in one step of the event loop. */
export class RouteTable {
  readonly #hosts = new Map<string, HostRoute>();
  readonly #services = new Map<string, { generation: number; hosts: string[]; requests: Tally }>();
  readonly #upstreams: Upstreams;

  constructor(upstreams: Upstreams) {
    this.#upstreams = upstreams;
  }

  get size(): number {
    return this.#services.size;
  }

  /** Requests of all services so far. */
  get requests(): [serviceId: string, tally: Tally][] {
    return [...this.#services].map(([serviceId, { requests }]) => [serviceId, requests]);
  }

  find(hostHeader: string): HostRoute | undefined {
    return this.#hosts.get(hostHeader) ?? this.#hosts.get(normalizeHost(hostHeader));
  }

  /** Throws RuntimeError if the change is not allowed: `superseded`, or `refused` if a host belongs to another service. */
  check({ serviceId, generation, routes }: ServiceRoutes): void {
    const present = this.#services.get(serviceId);
    if (present && present.generation > generation)
      throw new RuntimeError(
        'superseded',
        `The routes of the service have generation ${present.generation} already; ${generation} is older.`,
      );
    for (const { host } of routes) {
      const owner = this.#hosts.get(normalizeHost(host))?.serviceId;
      if (owner !== undefined && owner !== serviceId)
        throw new RuntimeError('refused', `The host name ${host} belongs to another service (${owner}).`);
    }
  }

  /** Replaces the routes of a service. Several entries of one host share its requests among all their upstreams. */
  set(service: ServiceRoutes): void {
    this.check(service);
    const { serviceId, generation, routes } = service;
    const byHost = Map.groupBy(routes, (route) => normalizeHost(route.host));
    const requests = this.#services.get(serviceId)?.requests ?? emptyTally();
    const old = this.#take(serviceId);
    for (const [host, entries] of byHost) {
      const upstreams = entries.flatMap((entry) =>
        entry.upstreams.map((upstream) => this.#upstreams.acquire(upstream)),
      );
      this.#hosts.set(host, new HostRoute(serviceId, entries[0]!.protocol, upstreams, requests));
    }
    this.#services.set(serviceId, { generation, hosts: [...byHost.keys()], requests });
    for (const upstream of old) upstream.release();
  }

  remove(serviceId: string): void {
    for (const upstream of this.#take(serviceId)) upstream.release();
    this.#services.delete(serviceId);
  }

  /** Removes the hosts of a service; returns their upstreams, still held. */
  #take(serviceId: string): UpstreamState[] {
    const hosts = this.#services.get(serviceId)?.hosts ?? [];
    return hosts.flatMap((host) => {
      const route = this.#hosts.get(host);
      this.#hosts.delete(host);
      return route?.upstreams ?? [];
    });
  }
}
