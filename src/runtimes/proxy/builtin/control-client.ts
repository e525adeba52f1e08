import { closeSync, constants, openSync, readdirSync } from 'node:fs';
import { request } from '#kernel/node-http.ts';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { controlSockets } from '#runtimes/proxy/builtin/protocol.ts';
import type { ControlAnswer, ControlRequest } from '#runtimes/proxy/builtin/protocol.ts';

/** Error codes of a missing proxy (not yet started, or ended). */
const AWAY = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']);

/** Returns whether a request failed because no proxy runs in the folder at the moment. */
export const isAway = (error: unknown): boolean => AWAY.has((error as NodeJS.ErrnoException).code ?? '');

/**
 * Sends a message to all proxies of a folder: the serving one and replaced ones that are still busy. Returns the answer of the serving one.
 * Throws `isAway` if none serves, the error of the socket, or an error if no answer comes within `timeoutMs`.
 */
export async function askProxy(directory: string, message: ControlRequest, timeoutMs: number): Promise<ControlAnswer> {
  const serving = (await askProxies(directory, message, timeoutMs)).findLast((answer) => answer.serving);
  if (!serving) throw Object.assign(new Error(`No proxy runs in ${directory}.`), { code: 'ENOENT' });
  return serving;
}

/** Sends a message to all proxies of a folder, and returns the answers of those that live. */
export async function askProxies(
  directory: string,
  message: ControlRequest,
  timeoutMs: number,
): Promise<ControlAnswer[]> {
  // On Linux the path goes through the folder's descriptor: a socket's name is limited to 108 bytes.
  const folder = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const place = process.platform === 'linux' ? `/proc/self/fd/${folder}` : directory;
  const asked = new Map<string, ControlAnswer | null>();
  try {
    // Repeated until no socket is new: a proxy that started meanwhile may have read its routes before the others wrote theirs.
    for (let names = waiting(directory, asked); names.length > 0; names = waiting(directory, asked)) {
      const answers = names.map((name) => exchange(join(place, name), message, timeoutMs).catch(absent));
      for (const [at, answer] of (await Promise.all(answers)).entries()) asked.set(names[at]!, answer);
    }
  } finally {
    closeSync(folder);
  }
  return [...asked.values()].filter((answer) => answer !== null);
}

const waiting = (directory: string, asked: Map<string, unknown>): string[] =>
  controlSockets(readdirSync(directory)).filter((name) => !asked.has(name));

function absent(error: unknown): null {
  if (isAway(error)) return null;
  throw error;
}

function exchange(socketPath: string, message: ControlRequest, timeoutMs: number): Promise<ControlAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, method: 'POST', agent: false, timeout: timeoutMs }, (response) => {
      text(response).then((body) => resolve(JSON.parse(body) as ControlAnswer), reject);
    });
    sent.on('timeout', () => sent.destroy(new Error(`The proxy did not answer within ${timeoutMs} ms.`)));
    sent.on('error', reject);
    sent.end(JSON.stringify(message));
  });
}
