import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '#kernel/node-http.ts';
import { RECORD_KEY } from '../api-server.fixture.ts';
import type { Cluster } from '../cluster.ts';
import { Connection } from '../connection.ts';
import type { ClusterObject } from '../kinds.ts';
import { LABEL } from '../labels.ts';

/** Path of the lists and watches of each kind, by the plural that ends it. */
type Plural = 'pods' | 'deployments' | 'configmaps' | 'services';

interface OpenWatch {
  plural: Plural;
  from: number;
  response: ServerResponse;
}

/** API server for tests: lists in pages and watches over HTTP as the real one does, and fails as it is told. */
export class FakeApi {
  readonly requests: { plural: Plural; isWatch: boolean; version: string | null }[] = [];
  readonly #objects = new Map<string, { plural: Plural; object: ClusterObject }>();
  readonly #history: { plural: Plural; type: string; object: ClusterObject }[] = [];
  readonly #watches = new Set<OpenWatch>();
  readonly #server = createServer(({ url, headers }, response) =>
    this.#answer(new URL(url!, 'http://cluster'), response, headers.accept?.includes('PartialObjectMetadata') ?? false),
  );
  /** Answers requests for logs, by the name of the pod; others have none. */
  readonly logs = new Map<string, (response: ServerResponse, query: URLSearchParams) => void>();
  /** Answers in place of the next lists or watches. */
  answers: ((url: URL, response: ServerResponse) => void)[] = [];
  /** Watches from a version below are answered with 410. */
  oldest = 0;
  /** Watches from a version below are answered with 504, as by a server that has not come as far. */
  unknown = 0;
  #version = 100;
  #port = 0;

  static async start(): Promise<FakeApi> {
    const api = new FakeApi();
    await api.listen();
    return api;
  }

  async listen(): Promise<void> {
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Ends the server with all connections, as a crash does. */
  async stop(): Promise<void> {
    this.#watches.clear();
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  connect(installation = 'test'): Cluster {
    const access = { server: `http://127.0.0.1:${this.#port}`, serverName: null, authorities: null, insecure: false, certificate: null, token: 't' }; // prettier-ignore
    const connection = new Connection({ access, policy: async () => ['127.0.0.1'], callMs: 2_000 });
    return { connection, installation, recordKey: RECORD_KEY };
  }

  /** Creates or changes an object, and tells the watches. */
  put(plural: Plural, name: string, serviceId: string, parts: Record<string, unknown> = {}): void {
    const key = `${plural}/${name}`;
    const { metadata, ...rest } = parts;
    const object: ClusterObject = {
      apiVersion: 'v1',
      kind: plural,
      metadata: {
        name,
        namespace: 'qd-n',
        labels: { [LABEL.installation]: 'test', [LABEL.service]: serviceId, [LABEL.generation]: '1' },
        resourceVersion: String(++this.#version),
        ...(metadata as object),
      },
      ...rest,
    };
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED';
    this.#objects.set(key, { plural, object });
    this.#tell(plural, type, object);
  }

  remove(plural: Plural, name: string): void {
    const { object } = this.#objects.get(`${plural}/${name}`)!;
    this.#objects.delete(`${plural}/${name}`);
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    this.#tell(plural, 'DELETED', { ...object, metadata });
  }

  /** Tells the watches of a kind how far they have come. */
  bookmark(plural: Plural): void {
    const metadata = { name: '', resourceVersion: String(++this.#version) };
    this.#tell(plural, 'BOOKMARK', { apiVersion: 'v1', kind: plural, metadata });
  }

  /** Sends bytes to the watches of a kind. */
  send(plural: Plural, text: string): void {
    for (const { plural: watched, response } of this.#watches) if (watched === plural) response.write(text);
  }

  /** Forgets all versions so far: watches from them are answered with 410. */
  forget(): void {
    this.oldest = ++this.#version;
  }

  /** Ends the watches of a kind in order. */
  end(plural: Plural): void {
    for (const watch of this.#watches)
      if (watch.plural === plural) {
        this.#watches.delete(watch);
        watch.response.end();
      }
  }

  /** Names of the objects of a kind that there are. */
  names = (plural: Plural): string[] =>
    [...this.#objects.values()].filter((one) => one.plural === plural).map(({ object }) => object.metadata.name);

  lists = (plural: Plural): number => this.requests.filter((one) => one.plural === plural && !one.isWatch).length;
  watches = (plural: Plural): (string | null)[] =>
    this.requests.filter((one) => one.plural === plural && one.isWatch).map(({ version }) => version);

  #tell(plural: Plural, type: string, object: ClusterObject): void {
    this.#history.push({ plural, type, object });
    this.send(plural, `${JSON.stringify({ type, object })}\n`);
  }

  #answer(url: URL, response: ServerResponse, isMetadata: boolean): void {
    if (url.pathname.endsWith('/log')) {
      const answer = this.logs.get(url.pathname.split('/').at(-2)!);
      return answer ? answer(response, url.searchParams) : void response.writeHead(404).end('{}');
    }
    const plural = url.pathname.split('/').at(-1) as Plural;
    const isWatch = url.searchParams.get('watch') === 'true';
    const version = url.searchParams.get('resourceVersion');
    this.requests.push({ plural, isWatch, version });
    const other = this.answers.shift();
    if (other) return other(url, response);
    if (!isWatch) return this.#list(url, plural, response, isMetadata);
    if (Number(version) < this.oldest) {
      const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
      return void response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`);
    }
    if (Number(version) < this.unknown) {
      const refusal = { code: 504, reason: 'Timeout', message: 'Too large resource version: 9, current: 1' };
      return void response.writeHead(504).end(JSON.stringify(refusal));
    }
    response.writeHead(200).flushHeaders();
    for (const { plural: of, type, object } of this.#history)
      if (of === plural && Number(object.metadata.resourceVersion) > Number(version))
        response.write(`${JSON.stringify({ type, object })}\n`);
    const watch = { plural, from: Number(version), response };
    this.#watches.add(watch);
    response.on('close', () => this.#watches.delete(watch));
  }

  #list(url: URL, plural: Plural, response: ServerResponse, isMetadata: boolean): void {
    const all = [...this.#objects.values()].filter((one) => one.plural === plural).map(({ object }) => object);
    const from = Number(url.searchParams.get('continue') ?? 0);
    const to = from + Number(url.searchParams.get('limit'));
    const metadata = { resourceVersion: String(this.#version), ...(to < all.length ? { continue: String(to) } : {}) };
    const items = all.slice(from, to).map((object) => (isMetadata ? { metadata: object.metadata } : object));
    response.end(JSON.stringify({ metadata, items }));
  }
}

/** Parts of a pod that is ready, or not. */
export const podStatus = (isReady: boolean) => ({
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
});
