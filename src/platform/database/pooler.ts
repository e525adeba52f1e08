import type pg from 'pg';

/** Limits of time of every connection, in milliseconds. Poolers refuse them as parameters of a connection. */
export const LIMITS = { idle_in_transaction_session_timeout: 30_000, lock_timeout: 15_000 };

const SET_LIMITS = Object.entries(LIMITS)
  .map(([name, value]) => `set local ${name} = ${value}`)
  .join('; ');

export const BEGIN = /^(begin|start transaction)\b/;
export const END = /^(commit|rollback)$/;

/**
 * Tells whether a pooler stands before PostgreSQL: it invents the process id that clients are told. A pooler with one server connection for
 * each client is taken for none.
 */
export async function isPooled(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]!.pid !== (client as unknown as { processID: number }).processID;
}

/** Sender of the statements of a connection. */
export type Ask = (text: string, values: readonly unknown[]) => Promise<pg.QueryResult>;

/**
 * Sends statements of a borrowed connection through a pooler, where the next transaction may reach another server. Nothing is prepared by
 * name, each transaction sets its limits, and a lone statement gets a transaction. The client must pipeline, so that this costs no round
 * trip.
 */
export function throughPooler(client: pg.ClientBase): Ask {
  let isOpen = false;
  const begin = async (text: string) => {
    // Several statements in one message are answered by a list.
    const results = (await client.query(`${text}; ${SET_LIMITS}`)) as unknown as pg.QueryResult[];
    return results[0]!;
  };
  const ask: Ask = (text, values) => client.query({ text, values: [...values] });
  return async (text, values) => {
    if (BEGIN.test(text)) {
      isOpen = true;
      return begin(text);
    }
    if (END.test(text)) isOpen = false;
    else if (!isOpen) return alone(begin('begin'), ask(text, values), client.query('commit'));
    return ask(text, values);
  };
}

/** Returns the answer of a statement whose transaction has ended. The commit of a statement that failed rolls it back. */
async function alone(...parts: [Promise<unknown>, Promise<pg.QueryResult>, Promise<unknown>]): Promise<pg.QueryResult> {
  const [begun, answer, ended] = await Promise.allSettled(parts);
  if (begun.status === 'rejected') throw begun.reason;
  if (answer.status === 'rejected') throw answer.reason;
  if (ended.status === 'rejected') throw ended.reason;
  return answer.value;
}
