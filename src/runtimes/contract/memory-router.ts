import { request } from 'node:http';
import { unsupportedCertificates } from '#runtimes/router.ts';
import type { CertificateStatus, RouteEntry, Router, Upstream } from '#runtimes/router.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

export interface HttpAnswer {
  status: number;
  body: string;
}

const keyOf = (upstream: Upstream): string => `${upstream.address}:${upstream.port}`;

/** Router inside the test process: keeps routes in memory and sends the requests of the contract itself. */
export class MemoryRouter implements Router {
  readonly port = 0;
  readonly services = new Map<string, { generation: number; routes: RouteEntry[] }>();
  readonly #underWay = new Map<string, number>();
  #turn = 0;

  async set(serviceId: string, generation: number, routes: RouteEntry[]): Promise<void> {
    const present = this.services.get(serviceId);
    if (present && present.generation > generation)
      throw new RuntimeError('superseded', `The routes have generation ${present.generation} already.`);
    this.services.set(serviceId, { generation, routes: structuredClone(routes) });
  }

  async drained(upstreams: Upstream[], timeoutMs: number): Promise<void> {
    const end = Date.now() + timeoutMs;
    const isUnderWay = ({ address, port }: Upstream) =>
      [...this.#underWay].some(
        ([key, count]) => count > 0 && (port ? key === keyOf({ address, port }) : key.startsWith(`${address}:`)),
      );
    while (upstreams.some(isUnderWay) && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  async remove(serviceId: string): Promise<void> {
    this.services.delete(serviceId);
  }

  async certificates(hosts: string[]): Promise<CertificateStatus[]> {
    return unsupportedCertificates(hosts);
  }

  async requests(): Promise<null> {
    return null;
  }

  /** Returns the upstreams of a host; empty if the host is unknown. */
  upstreams(host: string): Upstream[] {
    return [...this.services.values()].flatMap((service) =>
      service.routes.filter((route) => route.host === host).flatMap((route) => route.upstreams),
    );
  }

  /** Sends a GET through the routes as the proxy does: 404 for an unknown host, 503 without upstreams. Throws if no upstream answers. */
  async get(host: string, path: string): Promise<HttpAnswer> {
    const known = [...this.services.values()].some((service) => service.routes.some((route) => route.host === host));
    if (!known) return { status: 404, body: '' };
    const upstreams = this.upstreams(host);
    if (upstreams.length === 0) return { status: 503, body: '' };
    const upstream = upstreams[this.#turn++ % upstreams.length]!;
    const key = keyOf(upstream);
    this.#underWay.set(key, (this.#underWay.get(key) ?? 0) + 1);
    try {
      return await getFrom(upstream, host, path);
    } finally {
      this.#underWay.set(key, this.#underWay.get(key)! - 1);
    }
  }
}

function getFrom(upstream: Upstream, host: string, path: string): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: upstream.address, port: upstream.port, path, headers: { host }, agent: false, timeout: 10_000 },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (part: string) => (body += part));
        response.on('end', () => resolve({ status: response.statusCode!, body }));
        response.on('error', reject);
      },
    );
    sent.on('timeout', () => sent.destroy(new Error(`no answer from ${keyOf(upstream)} within 10 s`)));
    sent.on('error', reject);
    sent.end();
  });
}
