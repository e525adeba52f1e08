import type { Socket } from 'node:net';
import type pg from 'pg';

/** SQLSTATE of a write that a standby refuses. During a failover it answers in the place of its primary before it is promoted. */
export const STANDBY = '25006';

/**
 * Breaks the connection of a statement that is not answered in time. The server, or the network, may be gone without a sign, and the
 * statement would wait for ever. It ends as with any broken connection. Without `seconds` there is no limit. A connection to a standby is
 * broken too: the next one may lead to the primary.
 */
export async function breakingOff<T>(
  client: pg.ClientBase,
  answer: Promise<T>,
  seconds: number | undefined,
): Promise<T> {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  const timer = seconds === undefined ? undefined : setTimeout(() => stream.destroy(noAnswer(seconds)), seconds * 1000);
  try {
    return await answer;
  } catch (error) {
    if ((error as { code?: string }).code === STANDBY) await broken(client, stream);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Made when it is needed only: the trace of an error costs more than sending a statement. */
const noAnswer = (seconds: number): Error =>
  Object.assign(new Error(`Connection terminated: no answer within ${seconds} s.`), { code: '08006' });

/** Breaks a connection, and waits until its client knows: a pool would hand it out once more. */
function broken(client: pg.ClientBase, stream: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  client.once('end', resolve);
  if (stream.closed) resolve();
  stream.destroy();
  return promise;
}
