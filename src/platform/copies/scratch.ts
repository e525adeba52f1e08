import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { openSession } from '#platform/backup/session.ts';
import { inDatabase } from '#platform/database/other-database.ts';

const PREFIX = 'quarterdeck_check_';
/** SQLSTATE of a user who must not make databases. */
const NOT_ALLOWED = '42501';

/** Makes a database beside the program's for the work, and drops it. Drops those that killed processes have left, too. */
export async function withScratchDatabase<T>(
  config: pg.ClientConfig,
  work: (config: pg.ClientConfig) => Promise<T>,
): Promise<T> {
  const session = await openSession(config, 'quarterdeck check');
  const name = `${PREFIX}${randomBytes(6).toString('hex')}`;
  try {
    await dropLeft(session);
    await session.query(`create database ${name} template template0`).catch((error: unknown) => {
      if ((error as { code?: string }).code !== NOT_ALLOWED) throw error;
      throw new Error(
        'A copy is checked by restoring it into a scratch database, which the user of the database must not make: grant CREATEDB, or set QUARTERDECK_COPY_CHECK_DAYS=0.',
        { cause: error },
      );
    });
    try {
      return await work(inDatabase(config, name));
    } finally {
      await session.query(`drop database ${name} with (force)`);
    }
  } finally {
    await session.end();
  }
}

async function dropLeft(session: pg.Client): Promise<void> {
  const { rows } = await session.query<{ name: string }>(
    `select datname::text as name from pg_database d where datname ~ '^${PREFIX}[0-9a-f]+$'
      and not exists (select from pg_stat_activity a where a.datid = d.oid)`,
  );
  // It may be gone or in use again by now: the next check looks once more.
  for (const { name } of rows) await session.query(`drop database if exists ${name}`).catch(() => undefined);
}
