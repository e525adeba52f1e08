import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { unless } from './errors.ts';

/**
 * Opens the log of a container, with time stamps, as a stream of frames; null for a container that is gone. The client would otherwise hold a
 * whole log in memory that is not followed.
 */
export async function openLog(
  engine: Docker,
  id: string,
  query: { follow?: boolean; tail?: number; since?: number; until?: number },
  abortSignal?: AbortSignal,
): Promise<Readable | null> {
  const call = {
    path: `/containers/${id}/logs?`,
    method: 'GET',
    abortSignal,
    isStream: true,
    statusCodes: { 200: true, 404: 'no such container', 500: 'server error' },
    options: { follow: false, stdout: true, stderr: true, timestamps: true, ...query },
  };
  return unless(
    [404, 409],
    new Promise<Readable>((resolve, reject) => {
      engine.modem.dial(call as never, (error, answer) => (error ? reject(error) : resolve(answer as Readable)));
    }),
  );
}
