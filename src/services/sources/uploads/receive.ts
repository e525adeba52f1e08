import type { Readable } from 'node:stream';
import { badRequest } from '#kernel/errors.ts';
import { openNew } from '#kernel/private-files.ts';
import { bodyTooLarge } from '#platform/http/body-stream.ts';

/** Least bytes of an upload within that many milliseconds. A slower one is given up: others wait for its turn. */
const LEAST_BYTES = 64 * 1024;
const SLOW_MS = 30_000;

export interface ReceiveOptions {
  mostBytes: number;
  signal: AbortSignal;
  /** Milliseconds for 64 KiB; 30,000 without. */
  slowMs?: number;
}

/**
 * Writes a body into a new file. Throws 413 above the limit, and 400 for a body that ends early, comes too slowly, or is empty. The rest of
 * a body that is refused is thrown away.
 */
export async function receiveBody(body: Readable, file: string, options: ReceiveOptions): Promise<void> {
  const { mostBytes, signal, slowMs = SLOW_MS } = options;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sink = openNew(file);
  const cutOff = () => reject(badRequest('The body is not whole: the connection ended, or took too long.'));
  const slow = setTimeout(
    () => reject(badRequest(`The body is not whole: less than ${LEAST_BYTES / 1024} KiB came in ${slowMs / 1000} s.`)),
    slowMs,
  );
  let bytes = 0;
  let noted = 0;
  const count = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > mostBytes) reject(bodyTooLarge(mostBytes));
    if (bytes - noted < LEAST_BYTES) return;
    noted = bytes;
    slow.refresh();
  };
  const closed = () => void (body.readableEnded || cutOff());
  body.on('data', count);
  body.once('error', cutOff).once('close', closed);
  if (body.destroyed) closed();
  signal.addEventListener('abort', cutOff, { once: true });
  if (signal.aborted) cutOff();
  sink.once('error', reject).once('finish', resolve);
  body.pipe(sink);
  try {
    await promise;
  } finally {
    clearTimeout(slow);
    signal.removeEventListener('abort', cutOff);
    body.off('data', count).off('close', closed).unpipe(sink);
    sink.destroy();
    // The answer comes on the same connection.
    body.resume();
  }
  if (bytes === 0) throw badRequest('A body is required: a tar archive, plain or packed by gzip.');
}
