import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Dispatcher } from 'undici';
import { createServer } from '#kernel/node-http.ts';
import { LIMITS, type ChartObject } from '#kernel/parsing/formats.ts';
import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import { isReplaced } from '#runtimes/attempt.ts';
import { RuntimeError, type RuntimeContext, type WorkloadIdentity } from '#runtimes/runtime.ts';
import { find, type Cluster } from '../cluster.ts';
import { unlessGone } from '../errors.ts';
import type { ClusterObject } from '../kinds.ts';
import { LABEL, namespaceOf } from '../labels.ts';
import { readRecord, requireNewest } from '../record/index.ts';
import { AlteredRecord } from '../record/seal.ts';
import { decide, parseTarget, type Target } from './border-rules.ts';
import { PROTOBUF, nameInProtobuf } from './protobuf.ts';
import { isOwnRevision, whyRevision } from './revisions.ts';

/** Largest object that is passed on; a cluster stores 1.5 MiB at most. */
const MOST_BYTES = LIMITS['chart-object'].bytes;
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
  /** Name of the release. */
  release: string;
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
  /** Awaited before a hook of this run is removed, such as to read its log. Must not throw. */
  beforeHookGoes: (() => Promise<void>) | undefined;
  /** Reasons of refused requests, each once. */
  readonly refusals = new Set<string>();

  private constructor(cluster: Cluster, options: BorderOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#namespace = namespaceOf(options.identity);
    this.#server = createServer((request, answer) => {
      this.#serve(request, answer).catch((error: unknown) => {
        if (answer.headersSent) answer.destroy();
        else if (error instanceof ParsingError) refuse(answer, error.kind === 'busy' ? 429 : 403, error.message);
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
    const type = request.headers['content-type'];
    const asked = { method, target, body, object: await this.#read(method, target, body, type), type };
    const refusal = await this.#refusalOf(asked);
    if (refusal !== null) {
      this.refusals.add(refusal);
      return refuse(answer, 403, refusal);
    }
    await this.#pass(request, answer, { ...asked, target: target!, query });
  }

  /** Returns facts of the object in a body; null for what is no object in JSON. Throws ParsingError for one that is too much to be read. */
  async #read(
    method: string,
    target: Target | null,
    body: Buffer,
    type: string | undefined,
  ): Promise<ChartObject | null> {
    if (!isWriting(method) || target === null || body.length === 0 || type === PROTOBUF) return null;
    const { group, resource } = target;
    const file = { name: 'The object', text: body };
    try {
      return await readFileOf(this.#options.identity.organizationId, 'chart-object', file, { group, resource, namespace: this.#namespace }); // prettier-ignore
    } catch (error) {
      if (error instanceof ParsingError && error.kind === 'fault') return null;
      throw error;
    }
  }

  #withoutToken(path: string): string | null {
    const given = Buffer.from(path.slice(1, 1 + this.#token.length));
    const own = Buffer.from(this.#token);
    if (given.length !== own.length || !timingSafeEqual(given, own)) return null;
    return path.slice(1 + this.#token.length);
  }

  /** Returns why a request does not go on; null if it does. */
  async #refusalOf(asked: Asked): Promise<string | null> {
    const { method, target, object } = asked;
    const { allowClusterWide, readsOnly = false, context, identity } = this.#options;
    const verdict = decide(method, target, { namespace: this.#namespace, allowClusterWide });
    if (verdict.refusal !== null) return verdict.refusal;
    if (target === null || target.isDiscovery) return null;
    const isWrite = isWriting(method);
    if (isWrite && readsOnly) return 'Nothing is changed by a comparison.';
    if (isWrite && isReplaced(context)) return 'Another attempt goes on with this deployment.';
    // Helm begins and ends each revision with its own secret: a superseded one gets no further.
    const ended = isWrite && target.resource === 'secrets' ? await this.#whyEnded(identity) : null;
    if (ended !== null) return ended;
    if (verdict.mustBeClusterWide && !(await this.#isClusterWide(target)))
      return `A chart may not list ${target.resource} of all namespaces.`;
    if (verdict.foreign !== null && (await this.#isEnvironment(verdict.foreign)))
      return `The namespace ${verdict.foreign} is not the chart's.`;
    if (isWrite && target.resource === 'configmaps' && isRecord(target, method, object))
      return 'Names of ConfigMaps that begin with quarterdeck- are not for charts.';
    if (target.resource === 'namespaces' && method === 'POST' && !isHarmlessNamespace(object))
      return 'Names of namespaces that begin with qd- are not for charts.';
    if (verdict.mayBeOthers && (await this.#isOurs(target.path)))
      return `${target.resource}/${target.name} belongs to another service of the environment.`;
    return isWrite ? this.#refusalOfContent({ ...asked, target }) : null;
  }

  /** Returns why an object is not written or removed; null if it is. */
  #refusalOfContent({ method, target, body, object, type }: Asked & { target: Target }): string | null {
    const { allowClusterWide, release } = this.#options;
    const isSecret = target.group === '/api/v1' && target.resource === 'secrets';
    // Helm writes the secrets of its own revisions in another encoding; what a chart has comes in JSON.
    const ofHelm = isSecret && object === null && type === PROTOBUF ? nameInProtobuf(body) : null;
    const written = target.name ?? ofHelm ?? object?.name ?? '';
    const revision = isSecret ? whyRevision(written, object, release) : null;
    if (revision !== null) return revision;
    if (method === 'DELETE') return null;
    if (ofHelm !== null && ofHelm === written && isOwnRevision(ofHelm, release)) return null;
    if (object === null) return `What is written of ${target.resource} must be an object in JSON.`;
    const { foreignLabel, escalation } = object;
    if (foreignLabel !== null)
      return `The label ${foreignLabel} of ${target.resource} is not for charts: leave it out.`;
    return allowClusterWide ? null : escalation;
  }

  async #whyEnded(identity: WorkloadIdentity): Promise<string | null> {
    try {
      requireNewest(await readRecord(this.#cluster, identity), identity.generation);
      return null;
    } catch (error) {
      if (error instanceof AlteredRecord) return error.message;
      if (error instanceof RuntimeError && error.code === 'superseded')
        return 'A later deployment of the service was taken over already.';
      throw error;
    }
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
    { target, query, body, object }: Asked & { target: Target; query: string | undefined },
  ): Promise<void> {
    const gone = new AbortController();
    answer.on('close', () => gone.abort());
    const headers = pick(request.headers, REQUEST_HEADERS);
    const path = query === undefined ? target.path : `${target.path}?${query}`;
    const method = request.method as Dispatcher.HttpMethod;
    if (method === 'DELETE' && this.#isHook(target)) await this.beforeHookGoes?.();
    const said = await this.#cluster.connection.forward(method, path, { headers, body, signal: gone.signal });
    if (method === 'POST' && said.statusCode < 300) this.#noteHook(target, object);
    answer.writeHead(said.statusCode, pick(said.headers, ANSWER_HEADERS));
    await pipeline(said.body, answer).catch((error: unknown) => {
      // Helm ends its watches by closing them.
      if (!gone.signal.aborted) throw error;
    });
  }

  #isHook({ path }: Target): boolean {
    return this.hooks.some(({ collection, name }) => path === `${collection}/${encodeURIComponent(name)}`);
  }

  #noteHook({ path, namespace }: Target, object: ChartObject | null): void {
    if (namespace === null || !object?.isHook || !object.name) return;
    if (this.hooks.length < MOST_HOOKS) this.hooks.push({ collection: path, name: object.name });
  }
}

const hasOurLabel = (labels: Record<string, string>): boolean =>
  labels[LABEL.installation] !== undefined || labels['app.kubernetes.io/managed-by'] === 'quarterdeck';

/** Removes the part behind an object, such as `/scale`. */
const objectPath = (path: string): string => path.replace(/\/(status|scale)$/, '');

const isWriting = (method: string): boolean => method !== 'GET' && method !== 'HEAD';

/** Request that is decided about. */
interface Asked {
  method: string;
  target: Target | null;
  body: Buffer;
  /** Facts of the object in the body; null for what is no object in JSON. */
  object: ChartObject | null;
  /** Content type of the body. */
  type: string | undefined;
}

/** Returns whether a write is of a service's record. The name of what is created stands in the body, which has to be JSON. */
function isRecord({ name }: Target, method: string, object: ChartObject | null): boolean {
  const written = method === 'POST' ? (object?.name ?? 'quarterdeck-') : (name ?? '');
  return written.startsWith('quarterdeck-');
}

const isHarmlessNamespace = (object: ChartObject | null): boolean =>
  object?.name !== undefined && object.name !== null && !object.name.startsWith('qd-');

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
