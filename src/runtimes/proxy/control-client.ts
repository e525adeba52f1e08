import { closeSync, constants, openSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { CONTROL_SOCKET } from '#runtimes/proxy/protocol.ts';
import type { ControlAnswer, ControlRequest } from '#runtimes/proxy/protocol.ts';

/** Errors of a proxy that is not there (yet, or any more). */
const AWAY = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']);

/** Whether asking failed because no proxy runs in the folder at the moment. */
export const isAway = (error: unknown): boolean => AWAY.has((error as NodeJS.ErrnoException).code ?? '');

/** Asks the proxy of a folder. Throws what the socket threw (`isAway`), or when no answer comes within `timeoutMs`. */
export async function askProxy(directory: string, message: ControlRequest, timeoutMs: number): Promise<ControlAnswer> {
  // Through the folder's descriptor on Linux: a socket's name may have 108 bytes only.
  const folder = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const socketPath =
    process.platform === 'linux' ? `/proc/self/fd/${folder}/${CONTROL_SOCKET}` : join(directory, CONTROL_SOCKET);
  try {
    return await exchange(socketPath, message, timeoutMs);
  } finally {
    closeSync(folder);
  }
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
