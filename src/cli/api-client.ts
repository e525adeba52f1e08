import { request } from '#kernel/node-http.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '#kernel/printable.ts';

/** Calls of the API with a token. An answer that isn't 2xx throws with what the service says. */
export class ApiClient {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  async call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
    const { status, text } = await this.#send(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path} was answered ${status}: ${printable(text)}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Returns whether there is something at the path (no 404). */
  async exists(path: string): Promise<boolean> {
    const { status, text } = await this.#send('GET', path);
    if (status !== 404 && status >= 300) throw new Error(`GET ${path} was answered ${status}: ${printable(text)}`);
    return status !== 404;
  }

  async #send(method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        authorization: `Token ${this.#token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  }
}

/** Asks until the answer is something; throws with the complaint after the given seconds. */
export async function until<T>(seconds: number, complaint: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + seconds * 1000; ; await sleep(250)) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > end) throw new Error(complaint);
  }
}

/** GET of a deployed service. Names below `localhost` are this machine's, which not every resolver knows. */
export async function readPage(address: string): Promise<{ status: number; text: string }> {
  const url = new URL(address);
  if (!url.hostname.endsWith('.localhost')) {
    const answer = await fetch(url);
    return { status: answer.status, text: await answer.text() };
  }
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: url.port || 80, path: url.pathname, headers: { host: url.host } };
    const sent = request(options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode!, text }));
    });
    sent.setTimeout(10_000, () => sent.destroy(new Error(`${address} does not answer within 10 s.`)));
    sent.on('error', reject).end();
  });
}
