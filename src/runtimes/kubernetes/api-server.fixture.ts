import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '#kernel/node-http.ts';
import type { Cluster } from './cluster.ts';
import { Connection } from './connection.ts';

/** Key of the records in clusters of tests. */
export const RECORD_KEY = Buffer.alloc(32, 7);

interface Stored {
  metadata: {
    name: string;
    labels?: Record<string, string>;
    resourceVersion?: string;
    uid?: string;
    generation?: number;
  };
  [field: string]: unknown;
}

/** Answer to a write of another version than the present one, or to the creation of what is there. */
const CONFLICT = Symbol('conflict');

/**
 * API server for tests that keeps whatever is written to it, by path, and fails as it is told. Selectors choose by labels that are equal.
 * A write or removal with a version or uid that is not the present one answers 409.
 */
export class ApiServer {
  readonly objects = new Map<string, Stored>();
  /** Calls so far, such as `DELETE /api/v1/…`. */
  readonly calls: string[] = [];
  /** Returns the status with which a call is refused; null where it is answered. */
  refuse: (call: string) => number | null = () => null;
  /** APIs besides those of Kubernetes, such as `keda.sh/v1alpha1`. */
  apis: string[] = [];
  /** Called with each object that was deleted; one for which it returns true stays as if it had a finalizer. */
  isHeld: (path: string) => boolean = () => false;
  /** Answers that are no objects, such as logs, by their paths. */
  readonly texts = new Map<string, string>();
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
    return { api, cluster: { connection, installation: 'test', recordKey: RECORD_KEY }, close };
  }

  put(path: string, object: Stored): void {
    const before = this.objects.get(path);
    const uid = before?.metadata.uid ?? `uid-${this.#version + 1}`;
    const metadata = { ...object.metadata, uid, resourceVersion: String(++this.#version) };
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
    const plain = this.texts.get(path);
    if (plain !== undefined) return void response.end(plain);
    const answer = this.#carryOut(request.method!, path, text, searchParams);
    if (answer === CONFLICT)
      return void response.writeHead(409).end(JSON.stringify({ reason: 'Conflict', message: 'has changed' }));
    response.writeHead(answer ? 200 : 404).end(JSON.stringify(answer ?? { reason: 'NotFound', message: 'not found' }));
  }

  /** Returns whether a version or uid is not the present one of an object. */
  #isOther(path: string, { resourceVersion, uid }: { resourceVersion?: string; uid?: string } = {}): boolean {
    const present = this.objects.get(path)?.metadata;
    return (
      (resourceVersion !== undefined && resourceVersion !== present?.resourceVersion) ||
      (uid !== undefined && uid !== present?.uid)
    );
  }

  #carryOut(method: string, path: string, text: string, query: URLSearchParams): unknown {
    if (path === '/apis') return { groups: this.apis.map((groupVersion) => ({ versions: [{ groupVersion }] })) };
    if (this.apis.some((api) => path === `/apis/${api}`)) return { resources: [] };
    if (method === 'DELETE') {
      if (!this.objects.has(path)) return null;
      const { preconditions } = JSON.parse(text || '{}') as { preconditions?: Stored['metadata'] };
      if (this.#isOther(path, preconditions)) return CONFLICT;
      return this.isHeld(path) || this.objects.delete(path) ? {} : null;
    }
    if (query.has('dryRun')) return JSON.parse(text) as Stored;
    if (method === 'PUT' || method === 'PATCH') {
      const object = JSON.parse(text) as Stored;
      if (this.#isOther(path, object.metadata)) return CONFLICT;
      this.put(path, object);
      return this.objects.get(path);
    }
    if (method === 'POST') {
      const object = JSON.parse(text) as Stored;
      if (this.objects.has(`${path}/${object.metadata.name}`)) return CONFLICT;
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
