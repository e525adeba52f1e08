import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '#kernel/node-http.ts';
import type { Cluster } from './cluster.ts';
import { Connection } from './connection.ts';

interface Stored {
  metadata: { name: string; labels?: Record<string, string>; resourceVersion?: string; generation?: number };
  [field: string]: unknown;
}

/** API server for tests that keeps whatever is written to it, by path, and fails as it is told. Selectors choose by labels that are equal. */
export class ApiServer {
  readonly objects = new Map<string, Stored>();
  /** Calls so far, such as `DELETE /api/v1/…`. */
  readonly calls: string[] = [];
  /** Returns the status with which a call is refused; null where it is answered. */
  refuse: (call: string) => number | null = () => null;
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  #version = 0;

  /** Starts a server, and connects to it. `close` ends both. */
  static async start(): Promise<{ api: ApiServer; cluster: Cluster; close(): Promise<void> }> {
    const api = new ApiServer();
    await once(api.#server.listen(0, '127.0.0.1'), 'listening');
    const server = `http://127.0.0.1:${(api.#server.address() as AddressInfo).port}`;
    const access = { server, serverName: null, authorities: null, insecure: false, certificate: null, token: 't' };
    const connection = new Connection({ access, policy: async () => ['127.0.0.1'], callMs: 2_000 });
    const close = async () => {
      await connection.close();
      api.#server.closeAllConnections();
      api.#server.close();
    };
    return { api, cluster: { connection, installation: 'test' }, close };
  }

  put(path: string, object: Stored): void {
    const before = this.objects.get(path);
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    this.objects.set(path, { ...before, ...object, metadata: { ...before?.metadata, ...metadata } });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path, searchParams } = new URL(request.url!, 'http://cluster');
    let text = '';
    for await (const part of request) text += String(part);
    const call = `${request.method} ${path}`;
    this.calls.push(call);
    const status = this.refuse(call);
    if (status !== null) return void response.writeHead(status).end(JSON.stringify({ message: 'refused' }));
    const answer = this.#carryOut(request.method!, path, text, searchParams);
    response.writeHead(answer ? 200 : 404).end(JSON.stringify(answer ?? { reason: 'NotFound', message: 'not found' }));
  }

  #carryOut(method: string, path: string, text: string, query: URLSearchParams): unknown {
    if (path === '/apis') return { groups: [] };
    if (method === 'DELETE') return this.objects.delete(path) ? {} : null;
    if (method === 'PUT' || method === 'PATCH') {
      this.put(path, JSON.parse(text) as Stored);
      return this.objects.get(path);
    }
    if (method === 'POST') {
      const object = JSON.parse(text) as Stored;
      this.put(`${path}/${object.metadata.name}`, object);
      return this.objects.get(`${path}/${object.metadata.name}`);
    }
    return this.objects.get(path) ?? (/\/[a-z]+s(es)?$/.test(path) ? this.#list(path, query) : null);
  }

  #list(path: string, query: URLSearchParams) {
    const wanted = (query.get('labelSelector') ?? '').split(',').filter((one) => one.includes('='));
    const isChosen = ({ metadata }: Stored) =>
      wanted.every((one) => metadata.labels?.[one.split('=')[0]!] === one.split('=')[1]);
    const inside = [...this.objects].filter(([key]) => key.startsWith(`${path}/`)).map(([, object]) => object);
    return { metadata: { resourceVersion: String(this.#version) }, items: inside.filter(isChosen) };
  }
}
