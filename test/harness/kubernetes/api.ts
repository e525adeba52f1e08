import { once } from 'node:events';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';
import { parse } from 'yaml';

const CALL_TIMEOUT_MS = 10_000;

interface Kubeconfig {
  'current-context': string;
  contexts: { name: string; context: { cluster: string; user: string } }[];
  clusters: { name: string; cluster: { server: string; 'certificate-authority-data'?: string } }[];
  users: {
    name: string;
    user: { token?: string; 'client-certificate-data'?: string; 'client-key-data'?: string };
  }[];
}

export interface Answer {
  status: number;
  body: string;
}

export interface ExecOutput {
  stdout: string;
  stderr: string;
  /** `Success`, or `Failure` for a status other than 0. */
  status: string;
}

/** Object of Kubernetes as far as tests read it without knowing its kind. */
export interface KubernetesObject {
  metadata: { name: string };
  status?: { conditions?: { type: string; status: string }[]; addresses?: { type: string; address: string }[] };
}

/** Client of a cluster for tests, which knows no kinds: it takes and answers JSON at paths. */
export class KubernetesApi {
  readonly #server: string;
  readonly #agent: Agent;
  readonly #tls: { ca?: Buffer; cert?: Buffer; key?: Buffer };
  readonly #headers: Record<string, string>;

  constructor(kubeconfig: string) {
    const config = parse(kubeconfig) as Kubeconfig;
    const { context } = config.contexts.find(({ name }) => name === config['current-context'])!;
    const { cluster } = config.clusters.find(({ name }) => name === context.cluster)!;
    const { user } = config.users.find(({ name }) => name === context.user)!;
    this.#server = cluster.server;
    this.#tls = {
      ca: decode(cluster['certificate-authority-data']),
      cert: decode(user['client-certificate-data']),
      key: decode(user['client-key-data']),
    };
    this.#headers = user.token ? { authorization: `Bearer ${user.token}` } : {};
    this.#agent = new Agent({ connect: { ...this.#tls, timeout: CALL_TIMEOUT_MS }, headersTimeout: CALL_TIMEOUT_MS });
  }

  async call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Answer> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const answer = await request(`${this.#server}${path}`, {
      method,
      dispatcher: this.#agent,
      headers: { ...this.#headers, ...(body ? { 'content-type': type } : {}) },
      body: body ? JSON.stringify(body) : undefined,
    });
    return { status: answer.statusCode, body: await answer.body.text() };
  }

  /** Returns what stands at a path; throws for an error status. */
  async get<T>(path: string): Promise<T> {
    return JSON.parse(await this.text(path)) as T;
  }

  async list<T = KubernetesObject>(path: string): Promise<T[]> {
    return (await this.get<{ items: T[] }>(path)).items;
  }

  /** Returns the text at a path, such as a log; throws for an error status. */
  async text(path: string): Promise<string> {
    return successful(await this.call('GET', path), path);
  }

  async create(collection: string, object: object): Promise<void> {
    successful(await this.call('POST', collection, object), collection);
  }

  async delete(path: string): Promise<void> {
    successful(await this.call('DELETE', path), path);
  }

  /** Runs a command in a pod until it ends. */
  async exec(namespace: string, pod: string, command: string[], timeoutMs = CALL_TIMEOUT_MS): Promise<ExecOutput> {
    const query = new URLSearchParams([
      ...command.map((part) => ['command', part] as [string, string]),
      ['stdout', 'true'],
      ['stderr', 'true'],
    ]);
    const url = `${this.#server.replace(/^http/, 'ws')}/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`;
    const socket = new WebSocket(url, 'v5.channel.k8s.io', {
      ...this.#tls,
      headers: this.#headers,
      handshakeTimeout: CALL_TIMEOUT_MS,
    });
    // The first byte of a message tells the stream: 1 and 2 output, 3 the end.
    const streams = ['', '', '', ''];
    socket.on('message', (data: Buffer) => {
      streams[data[0]!] += data.subarray(1).toString();
    });
    await once(socket, 'close', { signal: AbortSignal.timeout(timeoutMs) });
    const [, stdout, stderr, end] = streams as [string, string, string, string];
    return { stdout, stderr, status: (JSON.parse(end) as { status: string }).status };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

const decode = (base64: string | undefined): Buffer | undefined =>
  base64 === undefined ? undefined : Buffer.from(base64, 'base64');

function successful({ status, body }: Answer, path: string): string {
  if (status >= 300) throw new Error(`${path}: ${status} ${body}`);
  return body;
}

/** Returns whether a condition of an object holds, such as `Ready`. */
export const hasCondition = (object: KubernetesObject, type: string): boolean =>
  object.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
