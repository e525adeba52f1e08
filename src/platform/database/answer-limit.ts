import type { Socket } from 'node:net';
import type pg from 'pg';

/**
 * Breaks the connection of a statement that is not answered in time. The server, or the network, may be gone without a sign, and the
 * statement would wait for ever. It ends as with any broken connection. Without `seconds` there is no limit.
 */
export async function breakingOff<T>(
  client: pg.ClientBase,
  answer: Promise<T>,
  seconds: number | undefined,
): Promise<T> {
  if (seconds === undefined) return answer;
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  const cause = Object.assign(new Error(`Connection terminated: no answer within ${seconds} s.`), { code: '08006' });
  const timer = setTimeout(() => stream.destroy(cause), seconds * 1000);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
  }
}
