import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { lockSession } from '#platform/database/locks.ts';

const FOLDER = path.join(import.meta.dirname, '../../../migrations');

interface Migration {
  version: number;
  name: string;
  sql: string;
  checksum: string;
  /** True if it has the header `-- breaking`: releases that don't know it can't run beside it. */
  breaking: boolean;
}

/** Reads the migrations of this release, in order. Throws if a number is missing or used twice. */
export async function readMigrations(folder = FOLDER): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name)).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const sql = await readFile(path.join(folder, name), 'utf8');
    const version = Number(name.slice(0, 4));
    if (migrations.some((other) => other.version === version))
      throw new Error(`Two migrations have the number ${version}.`);
    migrations.push({
      version,
      name,
      sql,
      checksum: createHash('sha256').update(sql).digest('hex'),
      breaking: /^-- breaking\b/m.test(sql),
    });
  }
  return migrations;
}

/** Table that exists until a restore has ended: the database must not be used before (platform/backup). */
export const UNFINISHED_RESTORE = 'restore_unfinished';

/**
 * Brings the database to this release: each missing migration in a transaction of its own, one process at a time.
 * Answers the names of those applied. Throws when the database is ahead with a breaking migration, when an applied
 * migration has changed since, or when a restore into it was broken off.
 */
export async function migrate(config: pg.ClientConfig, folder = FOLDER): Promise<string[]> {
  const client = new pg.Client(config);
  client.on('error', () => undefined); // The statement that it breaks tells of it.
  await client.connect();
  try {
    await lockMigrations(client);
    await refuseHalfRestored(client);
    return await applyMigrations(client, { folder });
  } finally {
    await client.end();
  }
}

/** Waits until no other process migrates or restores; held until the connection ends. */
export const lockMigrations = (client: pg.ClientBase) => lockSession(client, 'migrations');

async function refuseHalfRestored(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ there: boolean }>('select to_regclass($1) is not null as there', [
    UNFINISHED_RESTORE,
  ]);
  if (rows[0]!.there)
    throw new Error(
      'A restore into this database was broken off: run `quarterdeck restore FILE` again, it begins anew.',
    );
}

/** Applies what is missing, or of that `only` the versions given. The caller holds the lock. */
export async function applyMigrations(
  client: pg.ClientBase,
  { folder = FOLDER, only }: { folder?: string | undefined; only?: Set<number> },
): Promise<string[]> {
  const migrations = await readMigrations(folder);
  await client.query(`create table if not exists schema_migration (
    version integer primary key, name text not null, checksum text not null, breaking boolean not null, applied_at timestamptz not null default now())`);
  const applied = (
    await client.query<{ version: number; name: string; checksum: string; breaking: boolean }>(
      'select * from schema_migration',
    )
  ).rows;
  refuseStrangers(migrations, applied);
  const done = new Set(applied.map((row) => row.version));
  const missing = migrations.filter(({ version }) => !done.has(version) && (only?.has(version) ?? true));
  for (const migration of missing) await apply(client, migration);
  return missing.map((migration) => migration.name);
}

function refuseStrangers(
  migrations: Migration[],
  applied: { version: number; name: string; checksum: string; breaking: boolean }[],
): void {
  for (const row of applied) {
    const known = migrations.find((migration) => migration.version === row.version);
    if (!known && row.breaking)
      throw new Error(
        `The database was changed by a newer release (${row.name}) that this one can't run beside: start the newer release.`,
      );
    if (known && known.checksum !== row.checksum)
      throw new Error(
        `Migration ${row.name} is not the one that was applied to this database: restore the file as it was released.`,
      );
  }
}

async function apply(client: pg.ClientBase, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(`set local lock_timeout = '10s'`);
    await client.query(migration.sql);
    await client.query('insert into schema_migration (version, name, checksum, breaking) values ($1, $2, $3, $4)', [
      migration.version,
      migration.name,
      migration.checksum,
      migration.breaking,
    ]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw new Error(`Migration ${migration.name} failed: ${(error as Error).message}`, { cause: error });
  }
}
