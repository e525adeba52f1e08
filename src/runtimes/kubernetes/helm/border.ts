import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Dispatcher } from 'undici';
import { createServer } from '#kernel/node-http.ts';
import { isReplaced } from '#runtimes/attempt.ts';
import type { RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';
import { find, type Cluster } from '../cluster.ts';
import { unlessGone } from '../errors.ts';
import type { ClusterObject } from '../kinds.ts';
import { LABEL, namespaceOf } from '../labels.ts';
import { readRecord } from '../record.ts';
import { decide, parseTarget, type Target } from './border-rules.ts';

/** Largest object that is passed on; a cluster stores 1.5 MiB at most. */
const MOST_BYTES = 4 * 2 ** 20;
/** Hooks that are remembered of one run of helm. */
const MOST_HOOKS = 200;
/** Headers that go to the cluster. None of them acts for another account. */
const REQUEST_HEADERS = ['accept', 'accept-encoding', 'content-type'];
const ANSWER_HEADERS = ['content-type', 'content-encoding', 'warning', 'retry-after'];

/** Object that a hook of a chart is: helm does not remove it with the release. */
export interface Hook {
  /** Path of its kind in the namespace. */
  collection: string;
  name: string;
}

export interface BorderOptions {
  identity: WorkloadIdentity;
  allowClusterWide: boolean;
  /** True if nothing may be changed. */
  readsOnly?: boolean;
  context: Pick<RuntimeContext, 'signal' | 'attempt'>;
}

/**
 * Server on the loopback address that helm takes for the cluster. It passes on what a chart may do, with the cluster's credentials, which
 * helm never has (docs/decisions/0087-helm-runs-behind-a-border.md).
 */
export class Border {
  readonly #cluster: Cluster;
  readonly #options: BorderOptions;
  readonly #namespace: string;
  readonly #token = randomBytes(24).toString('hex');
  readonly #server: Server;
  readonly #scopes = new Map<string, Promise<string[]>>();
  /** Hooks that helm has created. */
  readonly hooks: Hook[] = [];
  /** Reasons of refused requests, each once. */
  readonly refusals = new Set<string>();

  private constructor(cluster: Cluster, options: BorderOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#namespace = namespaceOf(options.identity);
    this.#server = createServer((request, answer) => {
      this.#serve(request, answer).catch((error: unknown) => {
        if (answer.headersSent) answer.destroy();
        else refuse(answer, 502, `The cluster does not answer: ${(error as Error).message}`);
      });
    });
    // Programs in pods and ports are reached by upgraded connections, which no chart needs.
    this.#server.on('upgrade', (_request, socket) => socket.destroy());
  }

  static async open(cluster: Cluster, options: BorderOptions): Promise<Border> {
    const border = new Border(cluster, options);
    border.#server.listen(0, '127.0.0.1');
    await once(border.#server, 'listening');
    return border;
  }

  /** Address for helm. Its path holds the token: Kubernetes' clients send no other over plain HTTP. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${this.#token}`;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const [raw, query] = splitOnce(request.url ?? '', '?');
    const path = this.#withoutToken(raw);
    const method = request.method ?? '';
    const target = path === null ? null : parseTarget(path);
    if (path === null) return refuse(answer, 401, 'This address is for helm only.');
    const body = await readBody(request);
    if (body === null) return refuse(answer, 413, `An object may have ${MOST_BYTES / 2 ** 20} MiB.`);
    const refusal = await this.#refusalOf(method, target, body);
    if (refusal !== null) {
      this.refusals.add(refusal);
      return refuse(answer, 403, refusal);
    }
    await this.#pass(request, answer, { target: target!, query, body });
  }

  #withoutToken(path: string): string | null {
    const given = Buffer.from(path.slice(1, 1 + this.#token.length));
    const own = Buffer.from(this.#token);
    if (given.length !== own.length || !timingSafeEqual(given, own)) return null;
    return path.slice(1 + this.#token.length);
  }

  /** Returns why a request does not go on; null if it does. */
  async #refusalOf(method: string, target: Target | null, body: Buffer): Promise<string | null> {
    const { allowClusterWide, readsOnly = false, context, identity } = this.#options;
    const verdict = decide(method, target, { namespace: this.#namespace, allowClusterWide });
    if (verdict.refusal !== null) return verdict.refusal;
    if (target === null || target.isDiscovery) return null;
    const isWrite = method !== 'GET' && method !== 'HEAD';
    if (isWrite && readsOnly) return 'Nothing is changed by a comparison.';
    if (isWrite && isReplaced(context)) return 'Another attempt goes on with this deployment.';
    // Helm begins and ends each revision with its own secret: a superseded one gets no further.
    if (isWrite && target.resource === 'secrets' && (await this.#isSuperseded(identity)))
      return 'A later deployment of the service was taken over already.';
    if (verdict.mustBeClusterWide && !(await this.#isClusterWide(target)))
      return `A chart may not list ${target.resource} of all namespaces.`;
    if (verdict.foreign !== null && (await this.#isEnvironment(verdict.foreign)))
      return `The namespace ${verdict.foreign} is not the chart's.`;
    if (isWrite && target.resource === 'configmaps' && isRecord(target, method, body))
      return 'Names of ConfigMaps that begin with quarterdeck- are not for charts.';
    if (target.resource === 'namespaces' && method === 'POST' && !isHarmlessNamespace(body))
      return 'Names of namespaces that begin with qd- and labels that begin with quarterdeck. are not for charts.';
    if (verdict.mayBeOthers && (await this.#isOurs(target.path)))
      return `${target.resource}/${target.name} belongs to another service of the environment.`;
    return null;
  }

  async #isSuperseded(identity: WorkloadIdentity): Promise<boolean> {
    const record = await readRecord(this.#cluster, identity);
    return record !== null && record.generation > identity.generation;
  }

  /** Returns whether a kind is one of objects of the whole cluster. */
  async #isClusterWide({ group, resource }: Target): Promise<boolean> {
    const { connection } = this.#cluster;
    const known =
      this.#scopes.get(group) ??
      connection
        .get<{ resources: { name: string; namespaced: boolean }[] }>(group)
        .then(({ resources }) => resources.filter(({ namespaced }) => !namespaced).map(({ name }) => name));
    this.#scopes.set(group, known);
    return (await known).includes(resource);
  }

  /** Returns whether a namespace is one of an installation's, whatever its name. */
  async #isEnvironment(name: string): Promise<boolean> {
    if (name.startsWith('qd-')) return true;
    const labels = (await find(this.#cluster, 'Namespace', undefined, name))?.metadata.labels ?? {};
    return hasOurLabel(labels);
  }

  async #isOurs(path: string): Promise<boolean> {
    const object = await unlessGone(this.#cluster.connection.get<ClusterObject>(objectPath(path)));
    return hasOurLabel(object?.metadata.labels ?? {});
  }

  async #pass(
    request: IncomingMessage,
    answer: ServerResponse,
    { target, query, body }: { target: Target; query: string | undefined; body: Buffer },
  ): Promise<void> {
    const gone = new AbortController();
    answer.on('close', () => gone.abort());
    const headers = pick(request.headers, REQUEST_HEADERS);
    const path = query === undefined ? target.path : `${target.path}?${query}`;
    const method = request.method as Dispatcher.HttpMethod;
    const said = await this.#cluster.connection.forward(method, path, { headers, body, signal: gone.signal });
    if (method === 'POST' && said.statusCode < 300) this.#noteHook(target, body);
    answer.writeHead(said.statusCode, pick(said.headers, ANSWER_HEADERS));
    await pipeline(said.body, answer).catch((error: unknown) => {
      // Helm ends its watches by closing them.
      if (!gone.signal.aborted) throw error;
    });
  }

  #noteHook({ path, namespace }: Target, body: Buffer): void {
    const { metadata } = objectIn(body);
    if (namespace === null || metadata?.annotations?.['helm.sh/hook'] === undefined || !metadata.name) return;
    if (this.hooks.length < MOST_HOOKS) this.hooks.push({ collection: path, name: metadata.name });
  }
}

const hasOurLabel = (labels: Record<string, string>): boolean =>
  labels[LABEL.installation] !== undefined || labels['app.kubernetes.io/managed-by'] === 'quarterdeck';

/** Removes the part behind an object, such as `/scale`. */
const objectPath = (path: string): string => path.replace(/\/(status|scale)$/, '');

type Described = { metadata?: { name?: string; annotations?: Record<string, unknown>; labels?: unknown } };

/** Returns the object of a body; an empty one for what is no JSON. */
function objectIn(body: Buffer): Described {
  try {
    return Object(JSON.parse(body.toString())) as Described;
  } catch {
    return {};
  }
}

/** Returns whether a write is of a service's record. The name of what is created stands in the body, which has to be JSON. */
function isRecord({ name }: Target, method: string, body: Buffer): boolean {
  const written = method === 'POST' ? (objectIn(body).metadata?.name ?? 'quarterdeck-') : (name ?? '');
  return written.startsWith('quarterdeck-');
}

function isHarmlessNamespace(body: Buffer): boolean {
  const { metadata } = objectIn(body);
  if (typeof metadata?.name !== 'string' || metadata.name.startsWith('qd-')) return false;
  return !Object.keys(Object(metadata.labels)).some((label) => label.startsWith('quarterdeck.'));
}

function splitOnce(text: string, at: string): [string, string | undefined] {
  const index = text.indexOf(at);
  return index < 0 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)];
}

async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BYTES) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

const pick = (headers: IncomingMessage['headers'], names: string[]): Record<string, string | string[]> =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));

/** Answers as the API server does, so that helm prints the reason. */
function refuse(answer: ServerResponse, code: number, message: string): void {
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden', message, code };
  answer.writeHead(code, { 'content-type': 'application/json', connection: 'close' });
  answer.end(JSON.stringify(status));
}
