import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import type { ProxyHouse } from '#runtimes/proxy/contract/setup.ts';
import { fetchFrom } from '#runtimes/proxy/contract/visitors.ts';
import type { Upstream } from '#runtimes/router.ts';

/** Request as the upstream of a witness understood it. */
export interface SeenRequest {
  line: string;
  rawHeaders: string[];
  body: string;
}

/**
 * Upstream that parses requests as leniently as Node can, with an honest visitor beside it. It thus treats everything as a request that the
 * proxy lets through.
 */
export class Witness implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  readonly upstream: Upstream;
  readonly host: string;
  readonly #proxy: ProxyHouse;
  readonly #server;
  #asked = 0;

  private constructor(proxy: ProxyHouse, host: string, server: ReturnType<typeof createServer>) {
    this.#proxy = proxy;
    this.host = host;
    this.#server = server;
    this.upstream = { address: '127.0.0.1', port: (server.address() as AddressInfo).port };
    server.on('request', (request, response) => {
      let body = '';
      request.setEncoding('latin1').on('data', (part: string) => (body += part));
      request.on('error', () => undefined);
      const { method, url, rawHeaders, headers } = request;
      const seen = { line: `${method} ${url}`, rawHeaders, body: '' };
      this.seen.push(seen);
      request.on('end', () => {
        seen.body = body;
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ url, visitor: headers['x-visitor'], host: headers.host, body }));
      });
    });
    server.on('clientError', (_error, socket) => socket.destroy());
  }

  static async open(proxy: ProxyHouse): Promise<Witness> {
    const server = createServer({ insecureHTTPParser: true, keepAliveTimeout: 30_000 });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const host = proxy.host();
    const witness = new Witness(proxy, host, server);
    await proxy.route(host, [witness.upstream]);
    return witness;
  }

  /** Sends a request as an honest visitor and checks that the answer belongs to it. */
  async ask(): Promise<void> {
    const visitor = `honest-${++this.#asked}`;
    const path = `/${visitor}`;
    const answer = await fetchFrom(this.#proxy.port, this.host, { path, headers: { 'x-visitor': visitor } });
    expect(answer.status, answer.body).toBe(200);
    expect(JSON.parse(answer.body)).toEqual({ url: path, visitor, host: this.host, body: '' });
  }

  /** Requests that came from no honest visitor. */
  get foreign(): SeenRequest[] {
    return this.seen.filter(({ line }) => !/^GET \/honest-\d+$/.test(line));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

/** Returns the values of a header, however it is spelled, in order. */
export const valuesOf = ({ rawHeaders }: SeenRequest, name: string): string[] =>
  rawHeaders.flatMap((given, at) =>
    at % 2 === 0 && given.toLowerCase().replaceAll('_', '-') === name ? [rawHeaders[at + 1]!] : [],
  );
