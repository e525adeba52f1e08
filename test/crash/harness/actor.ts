import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/** Answer of the API. */
export interface HttpAnswer {
  status: number;
  body: any;
}

/** Error of a sent request without an answer: it may or may not have taken effect. */
export class NoAnswer extends Error {}

const REFUSED = new Set(['ECONNREFUSED']);

/** Time during which an actor retries a call while the connection is refused. */
const PATIENCE_MS = 20_000;
const AGAIN_MS = 50;

/** Client of the API over HTTP. Tries the next address, and again, while the connection is refused: nothing was sent there. */
export class HttpActor {
  readonly organizationId: string;
  readonly token: string;
  /** URL of the git repository of its applications. */
  readonly source: string;
  readonly #urls: () => string[];
  #turn = 0;

  constructor(organizationId: string, token: string, source: string, urls: () => string[]) {
    this.organizationId = organizationId;
    this.token = token;
    this.source = source;
    this.#urls = urls;
  }

  /** Returns the answer, whatever its status. Throws `NoAnswer` if the connection broke in between. */
  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    for (const end = performance.now() + PATIENCE_MS; ;) {
      const urls = this.#urls();
      const url = urls[this.#turn++ % Math.max(1, urls.length)];
      try {
        if (!url) throw new Error('No process serves the API.');
        return await this.#send(url, method, path, body, headers);
      } catch (error) {
        if (url && !isRefused(error)) throw new NoAnswer(`${method} ${path}: ${causeOf(error)}`, { cause: error });
        if (performance.now() > end) throw error;
        await sleep(AGAIN_MS);
      }
    }
  }

  /** Returns the body of an answer with the given status; throws with the answer if the status differs. */
  async ask(
    method: string,
    path: string,
    status: number,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<any> {
    const answer = await this.call(method, path, body, headers);
    if (answer.status !== status)
      throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Like `ask`, by a client that repeats a call whose connection broke, under its key (docs/api.md). `onBreak` is told of each. */
  async askUntilAnswered(method: string, path: string, status: number, onBreak: () => void): Promise<any> {
    const headers = { 'idempotency-key': randomUUID() };
    for (;;)
      try {
        return await this.ask(method, path, status, undefined, headers);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        onBreak();
      }
  }

  async #send(
    url: string,
    method: string,
    path: string,
    body: unknown,
    more: Record<string, string>,
  ): Promise<HttpAnswer> {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Token ${this.token}`,
        // A killed process breaks its connections: a new connection for each call shows what a client would see.
        connection: 'close',
        ...more,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.startsWith('application/json');
    return { status: response.status, body: json && text ? JSON.parse(text) : text };
  }

  /** Creates a project with an environment, and returns the environment's id. */
  async environment(name: string): Promise<string> {
    const project = await this.ask('POST', `/organization/${this.organizationId}/project`, 201, { name });
    return (await this.ask('POST', `/project/${project.id}/environment`, 201, { name: 'e', mode: 'PRODUCTION' })).id;
  }

  /** Creates an application from the actor's source in the environment. */
  async application(environmentId: string, name: string, more: Record<string, unknown> = {}): Promise<string> {
    const body = {
      name,
      git_repository: { url: this.source, branch: 'main' },
      dockerfile_path: 'Dockerfile',
      ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
      ...more,
    };
    return (await this.ask('POST', `/environment/${environmentId}/application`, 201, body)).id;
  }
}

const causeOf = (error: unknown): string => {
  const { cause, message } = error as Error & { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message;
};

const isRefused = (error: unknown): boolean => {
  const code = (error as { cause?: { code?: string } }).cause?.code;
  return code !== undefined && REFUSED.has(code);
};
