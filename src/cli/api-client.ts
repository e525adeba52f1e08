import { Readable } from 'node:stream';
import { request } from '#kernel/node-http.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '#kernel/printable.ts';

/** Seconds for a call, and for an upload, whose answer may wait for a deployment. */
const CALL_SECONDS = 60;
const UPLOAD_SECONDS = 900;
/** Seconds for which a call is repeated while the service is too busy, and the default pause. */
const BUSY_SECONDS = 300;
const PAUSE_SECONDS = 2;

interface Answer {
  status: number;
  text: string;
  /** Seconds after which the service may be asked again; null if it does not say. */
  retryAfter: number | null;
}

/** The service cannot be reached at present, or what stands before it says so. A question may be repeated. */
export class NoAnswer extends Error {}

interface Body {
  type: string;
  /** Makes the body: once for each attempt, as a stream is used up by it. */
  make(): string | Readable | Promise<Readable>;
}

/**
 * Calls of the API with a token. An answer that isn't 2xx throws with what the service says, and a call that gets none with the reason.
 * Redirects are not followed: they would lead the token elsewhere. Calls that the service is too busy for are repeated when it says.
 */
export class ApiClient {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  async call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
    const { text } = await this.#succeed(method, path, body);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Sends a tar archive packed by gzip. `archive` makes it, again for each attempt. */
  async upload<T>(path: string, archive: () => Promise<Readable>): Promise<T> {
    const answer = await this.#send('POST', path, { type: 'application/gzip', make: archive }, UPLOAD_SECONDS);
    if (answer.status >= 300) throw refusalOf('POST', path, answer);
    return JSON.parse(answer.text) as T;
  }

  /** Returns whether there is something at the path (no 404). */
  async exists(path: string): Promise<boolean> {
    return (await this.#succeed('GET', path, undefined, 404)).status !== 404;
  }

  async #succeed(method: string, path: string, body?: unknown, other?: number): Promise<Answer> {
    const json = body === undefined ? undefined : { type: 'application/json', make: () => JSON.stringify(body) };
    const answer = await this.#send(method, path, json, CALL_SECONDS);
    if (answer.status >= 300 && answer.status !== other) throw refusalOf(method, path, answer);
    return answer;
  }

  async #send(method: string, path: string, body: Body | undefined, seconds: number): Promise<Answer> {
    for (const end = Date.now() + BUSY_SECONDS * 1000; ;) {
      const answer = await this.#request(method, path, body, seconds);
      // 503 without a time may mean anything, also that something was done.
      const isBusy = answer.status === 429 || (answer.status === 503 && answer.retryAfter !== null);
      const pause = (answer.retryAfter ?? PAUSE_SECONDS) * 1000;
      if (!isBusy || Date.now() + pause > end) return answer;
      await sleep(pause);
    }
  }

  async #request(method: string, path: string, body: Body | undefined, seconds: number): Promise<Answer> {
    const content = await body?.make();
    try {
      const answer = await fetch(`${this.#url}${path}`, {
        method,
        headers: { authorization: `Token ${this.#token}`, ...(body && { 'content-type': body.type }) },
        redirect: 'manual',
        signal: AbortSignal.timeout(seconds * 1000),
        // A stream is sent while it is read.
        ...(content === undefined ? {} : { body: content, duplex: 'half' }),
      } as RequestInit);
      const after = answer.headers.get('retry-after');
      const retryAfter = after !== null && /^\d{1,6}$/.test(after) ? Number(after) : null;
      return { status: answer.status, text: await answer.text(), retryAfter };
    } catch (error) {
      throw new NoAnswer(`${method} ${this.#url}${path} got no answer: ${printable(reasonOf(error))}`, {
        cause: error,
      });
    } finally {
      if (content instanceof Readable) content.destroy();
    }
  }
}

function refusalOf(method: string, path: string, { status, text }: Answer): Error {
  const message = `${method} ${path} was answered ${status}: ${printable(text)}`;
  return status >= 502 && status <= 504 ? new NoAnswer(message) : new Error(message);
}

/** Returns the innermost reason of a failed `fetch`, whose own message is always the same. */
function reasonOf(error: unknown): string {
  const { message, cause, code, errors } = error as {
    message: string;
    cause?: unknown;
    code?: string;
    errors?: unknown[];
  };
  // Several addresses were tried.
  if (errors?.length) return [...new Set(errors.map(reasonOf))].join(', ');
  if (cause instanceof Error) return reasonOf(cause);
  return message || code || String(error);
}

/** Milliseconds between two questions. */
const PAUSE_MS = 250;

/** Asks until the answer is something; throws with the complaint after the given seconds. */
export async function until<T>(seconds: number, complaint: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + seconds * 1000; ; await sleep(PAUSE_MS)) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > end) throw new Error(complaint);
  }
}

/** Milliseconds for a page of a deployed service. */
const PAGE_MS = 10_000;

/** GET of a deployed service. Names below `localhost` are this machine's, which not every resolver knows. */
export async function readPage(address: string): Promise<{ status: number; text: string }> {
  const url = new URL(address);
  if (!url.hostname.endsWith('.localhost')) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(PAGE_MS) });
    return { status: answer.status, text: await answer.text() };
  }
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: url.port || 80, path: url.pathname, headers: { host: url.host } };
    const sent = request(options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode!, text }));
    });
    sent.setTimeout(PAGE_MS, () => sent.destroy(new Error(`${address} does not answer within ${PAGE_MS / 1000} s.`)));
    sent.on('error', reject).end();
  });
}
