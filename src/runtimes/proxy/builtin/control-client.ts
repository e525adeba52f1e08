import { closeSync, constants, openSync, readdirSync } from 'node:fs';
import { request } from '#kernel/node-http.ts';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { controlSockets } from '#runtimes/proxy/builtin/protocol.ts';
import type { ControlAnswer, ControlRequest } from '#runtimes/proxy/builtin/protocol.ts';

/** Errors of a proxy that is not there (yet, or any more). */
const AWAY = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']);

/** Whether asking failed because no proxy runs in the folder at the moment. */
export const isAway = (error: unknown): boolean => AWAY.has((error as NodeJS.ErrnoException).code ?? '');

/**
 * Asks all proxies of a folder: the one that serves and those that it replaced and that still have something to do. Answers what
 * the serving one says. Throws `isAway` when none serves, what the socket threw, or when no answer comes within `timeoutMs`.
 */
export async function askProxy(directory: string, message: ControlRequest, timeoutMs: number): Promise<ControlAnswer> {
  // Through the folder's descriptor on Linux: a socket's name may have 108 bytes only.
  const folder = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const place = process.platform === 'linux' ? `/proc/self/fd/${folder}` : directory;
  const asked = new Map<string, ControlAnswer | null>();
  try {
    // Looked up until none is new: one that came meanwhile may have read its routes before the others had written theirs.
    for (let names = waiting(directory, asked); names.length > 0; names = waiting(directory, asked)) {
      const answers = names.map((name) => exchange(join(place, name), message, timeoutMs).catch(absent));
      for (const [at, answer] of (await Promise.all(answers)).entries()) asked.set(names[at]!, answer);
    }
  } finally {
    closeSync(folder);
  }
  const serving = [...asked.values()].findLast((answer) => answer?.serving);
  if (!serving) throw Object.assign(new Error(`No proxy runs in ${directory}.`), { code: 'ENOENT' });
  return serving;
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
