import pg from 'pg';
import { isPooled } from '#platform/database/pooler.ts';

/** Settings that name a PostgreSQL; the second may be empty. */
export interface ServerUrls {
  databaseUrl: string;
  databaseDirectUrl: string;
}

/** Connection to the server that the settings name. */
export interface FoundServer {
  directConfig: pg.ClientConfig;
  /** True if DATABASE_URL leads through a pooler. */
  isPooled: boolean;
}

/** Milliseconds for a connection and for each question: a wrong address may lead to silence. */
const ANSWER_MS = 5_000;

/** Connects to both URLs and compares their servers. Throws an error that names the setting to be changed. */
export async function findServer(
  { databaseUrl, databaseDirectUrl }: ServerUrls,
  answerMs = ANSWER_MS,
): Promise<FoundServer> {
  const used = await identify('DATABASE_URL', databaseUrl, answerMs);
  if (!databaseDirectUrl) {
    if (used.isPooled)
      throw new Error(
        'DATABASE_URL leads through a pooler: set DATABASE_DIRECT_URL to the same database without the pooler, which LISTEN, migrations and the locks of workers need.',
      );
    return { directConfig: { connectionString: databaseUrl }, isPooled: false };
  }
  const direct = await identify('DATABASE_DIRECT_URL', databaseDirectUrl, answerMs);
  if (direct.isPooled)
    throw new Error('DATABASE_DIRECT_URL leads through a pooler: it must lead to PostgreSQL itself.');
  if (direct.identity !== used.identity)
    throw new Error(
      `DATABASE_DIRECT_URL leads to another database than DATABASE_URL: both must lead to the same one (${direct.place} and ${used.place}).`,
    );
  return { directConfig: { connectionString: databaseDirectUrl }, isPooled: used.isPooled };
}

async function identify(setting: string, connectionString: string, answerMs: number) {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: answerMs, query_timeout: answerMs });
  client.on('error', () => undefined); // The statement that it breaks tells of it.
  const place = `${client.host}:${client.port}`;
  try {
    await client.connect();
    // A time as text would depend on the time zone of the user or the URL.
    const { rows } = await client.query<{ identity: string }>(
      `select format('%s %s', oid, extract(epoch from pg_postmaster_start_time())) as identity
        from pg_database where datname = current_database()`,
    );
    return { place, identity: rows[0]!.identity, isPooled: await isPooled(client) };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    throw new Error(
      `${setting}: the PostgreSQL at ${place} cannot be used: ${message || code}. Start it, or mend ${setting}.`,
      { cause: error },
    );
  } finally {
    await client.end();
  }
}
