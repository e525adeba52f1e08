import pg from 'pg';

/** Settings of the session: values are written alike whatever the server's settings, and no time limit ends a statement. */
const SETTINGS: Record<string, string> = {
  timezone: 'UTC',
  datestyle: 'ISO, YMD',
  intervalstyle: 'postgres',
  extra_float_digits: '3',
  client_encoding: 'UTF8',
  bytea_output: 'hex',
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  transaction_timeout: '0',
};

/** Opens a connection for one backup or restore. The signal breaks it off, with the statement that it is at. */
export async function openSession(config: pg.ClientConfig, name: string, signal?: AbortSignal): Promise<pg.Client> {
  const client = new pg.Client({ ...config, application_name: name });
  client.on('error', () => undefined); // The statement that it breaks tells of it.
  await client.connect();
  signal?.addEventListener('abort', () => void client.end());
  // It may have come while the connection was made.
  if (signal?.aborted) await client.end();
  signal?.throwIfAborted();
  // Only those that the server knows: `transaction_timeout` is there since PostgreSQL 17.
  await client.query(
    `select set_config(wanted.name, wanted.value, false)
    from unnest($1::text[], $2::text[]) as wanted(name, value) join pg_settings on lower(pg_settings.name) = wanted.name`,
    [Object.keys(SETTINGS), Object.values(SETTINGS)],
  );
  return client;
}
