import { finished } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, type CopyStreamQuery } from 'pg-copy-streams';
import { readRows, verifyArchive } from '#platform/backup/archive-reader.ts';
import {
  dropEverything,
  isEmpty,
  isThere,
  listForeignKeys,
  listTables,
  listTriggers,
} from '#platform/backup/catalog.ts';
import { BackupRefused, type Manifest, type TableDump } from '#platform/backup/format.ts';
import { openSession } from '#platform/backup/session.ts';
import { openDatabase, type Transaction } from '#platform/database/index.ts';
import { applyMigrations, lockMigrations, readMigrations, UNFINISHED_RESTORE } from '#platform/database/migrate.ts';
import { createVault, keyIdOf } from '#platform/vault/index.ts';

export interface RestoreOptions {
  /** Keys of the vault; all that the dump was made with must be among them. */
  vaultKeys: Buffer[];
  /** Completes the restored database, in the transaction after which a start accepts it. */
  finish(db: Transaction, manifest: Manifest): Promise<void>;
  /** Folder of the migrations; that of the program without. */
  migrations?: string;
  progress?(text: string): void;
  /** Breaks it off. */
  signal?: AbortSignal;
}

/**
 * Loads a backup into an empty database. Everything that can be refused is refused before anything is written: what is no whole backup
 * of a format that this release knows, migrations that it does not know, another key of the vault, a database with something in it.
 * Broken off in any place it leaves a database that starts refuse and that a restore begins anew on. Throws BackupRefused.
 */
export async function restoreDatabase(
  config: pg.ClientConfig,
  file: string,
  options: RestoreOptions,
): Promise<Manifest> {
  const progress = options.progress ?? (() => undefined);
  progress(`Checking ${file}`);
  const manifest = await verifyArchive(file);
  await refuseStrangers(manifest, options.migrations);
  refuseWrongKey(manifest, options.vaultKeys);
  const client = await openSession(config, 'quarterdeck restore', options.signal);
  try {
    // Held to the end: a process that starts meanwhile waits, and finds the database restored.
    await lockMigrations(client);
    await makeRoom(client);
    const versions = new Set(manifest.migrations.map(({ version }) => version));
    await applyMigrations(client, { folder: options.migrations, only: versions });
    await load(client, file, manifest, progress);
    progress('Bringing the database to this release');
    await applyMigrations(client, { folder: options.migrations });
    await client.query('analyze');
    await finish(config, manifest, options);
    return manifest;
  } finally {
    await client.end();
  }
}

/** Refuses a backup with migrations that this release does not know, or has with another content. */
export async function refuseStrangers(
  manifest: Pick<Manifest, 'migrations' | 'release'>,
  folder?: string,
): Promise<void> {
  const known = new Map((await readMigrations(folder)).map((migration) => [migration.version, migration]));
  for (const { version, name, checksum } of manifest.migrations) {
    const ours = known.get(version);
    if (!ours)
      throw new BackupRefused(
        `The backup was made by a newer release (${manifest.release}, which has the migration ${name}): restore it with that one.`,
      );
    if (ours.checksum !== checksum)
      throw new BackupRefused(`The migration ${name} of this release is not the one that the backup was made with.`);
  }
}

/**
 * Refuses keys that the dump was not made with. The canary proves its own key; of the other keys only the ids can be compared without a
 * database.
 */
function refuseWrongKey({ installation, vaultKeys }: Manifest, keys: Buffer[]): void {
  const vault = createVault(keys);
  const missing = vaultKeys.filter((id) => !vault.keyIds().includes(id));
  if (missing.length > 0)
    throw new BackupRefused(
      `The key of the vault is not the one that the backup was made with: the key file lacks ${missing.join(', ')} and has ${vault.keyIds().join(', ')}. Put the right key file there first.`,
    );
  const canary = Buffer.from(installation.canary, 'base64');
  try {
    if (vault.openOwn('installation/canary', canary) === installation.id) return;
  } catch (cause) {
    throw new BackupRefused(`The key ${keyIdOf(canary)} of the vault is not the one of the backup.`, cause);
  }
  throw new BackupRefused('The backup belongs to another installation than it says.');
}

/** Makes sure that there is nothing that a restore would overwrite, and marks the database as being restored. */
async function makeRoom(client: pg.Client): Promise<void> {
  const again = await isThere(client, UNFINISHED_RESTORE);
  if (!again) await refuseFull(client);
  await client.query('begin');
  // Whatever is there came from the restore that was broken off.
  if (again) await dropEverything(client);
  await client.query(`create table ${UNFINISHED_RESTORE} (begun_at timestamptz not null default now())`);
  await client.query('commit');
}

/** Throws BackupRefused if the database has something in it. */
export async function requireEmpty(config: pg.ClientConfig): Promise<void> {
  const client = await openSession(config, 'quarterdeck restore');
  try {
    await refuseFull(client);
  } finally {
    await client.end();
  }
}

async function refuseFull(client: pg.Client): Promise<void> {
  if (!(await isEmpty(client)))
    throw new BackupRefused(
      'The database is not empty, and a restore overwrites nothing. Restore into a new one: set DATABASE_URL to an empty database, ' +
        'or QUARTERDECK_DATA_DIR to another folder (with the key file in it); the folder `postgres` in the data directory can also be moved away while Quarterdeck is stopped.',
    );
}

/** Loads all rows in one transaction. Foreign keys are taken off and put on again, so that the order of tables does not matter. */
async function load(
  client: pg.Client,
  file: string,
  manifest: Manifest,
  progress: (text: string) => void,
): Promise<void> {
  const id = (name: string) => client.escapeIdentifier(name);
  const literal = (text: string) => client.escapeLiteral(text);
  await client.query('begin');
  await refuseOtherTables(client, manifest.tables);
  const triggers = await listTriggers(client);
  for (const trigger of triggers)
    await client.query(`alter table ${id(trigger.table)} disable trigger ${id(trigger.name)}`);
  const keys = await listForeignKeys(client);
  for (const key of keys) await client.query(`alter table ${id(key.table)} drop constraint ${id(key.name)}`);
  // Migrations may have put rows in.
  await client.query(`truncate ${manifest.tables.map((table) => id(table.name)).join(', ')}`);
  for (const { name, of, from, to } of manifest.partitions)
    await client.query(
      `create table if not exists ${id(name)} partition of ${id(of)} for values from (${literal(from)}) to (${literal(to)})`,
    );
  await copyRows(client, file, manifest, progress);
  for (const { name, value, called } of manifest.sequences)
    await client.query('select setval($1::regclass, $2::bigint, $3)', [id(name), value, called]);
  progress('Checking the references');
  for (const key of keys)
    await client.query(`alter table ${id(key.table)} add constraint ${id(key.name)} ${key.definition}`);
  for (const trigger of triggers)
    await client.query(`alter table ${id(trigger.table)} enable trigger ${id(trigger.name)}`);
  await client.query('commit');
}

/** Refuses a dump whose migrations do not lead to its tables: this release is then not the one that it claims to be. */
async function refuseOtherTables(client: pg.Client, dumped: TableDump[]): Promise<void> {
  const present = await listTables(client);
  const text = (tables: { name: string; columns: string[] }[]) =>
    tables.map(({ name, columns }) => `${name} (${columns.toSorted().join(', ')})`);
  const [there, wanted] = [text(present), text(dumped)];
  const differing = [
    ...wanted.filter((table) => !there.includes(table)),
    ...there.filter((table) => !wanted.includes(table)),
  ];
  if (differing.length > 0)
    throw new BackupRefused(`The migrations of the backup do not lead to its tables: ${differing.join('; ')}.`);
}

/** Sends the parts of each table one after the other into one COPY, and counts what arrived. */
async function copyRows(
  client: pg.Client,
  file: string,
  manifest: Manifest,
  progress: (text: string) => void,
): Promise<void> {
  let current: { table: TableDump; stream: CopyStreamQuery } | undefined;
  const end = async () => {
    if (!current) return;
    const { table, stream } = current;
    stream.end();
    await finished(stream);
    // Backups of earlier releases may say 0 of a table with rows. The sums of its parts hold as well.
    if (table.rows !== 0 && stream.rowCount !== table.rows)
      throw new BackupRefused(`Of ${table.rows} rows of ${table.name} ${stream.rowCount} arrived.`);
    current = undefined;
  };
  for await (const { table, rows } of readRows(file, manifest)) {
    if (current?.table !== table) {
      await end();
      progress(`Restoring ${table.name}`);
      const columns = table.columns.map((column) => client.escapeIdentifier(column)).join(', ');
      const stream = client.query(copyFrom(`copy ${client.escapeIdentifier(table.name)} (${columns}) from stdin`));
      current = { table, stream };
    }
    await write(current.stream, rows);
  }
  await end();
}

/** Waits for room in the stream, or for the reason why there will never be any. */
async function write(stream: CopyStreamQuery, bytes: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    stream.once('error', reject);
    stream.write(bytes, (error) => {
      stream.off('error', reject);
      if (error) reject(error);
      else resolve();
    });
  });
}

/** Runs the last transaction: it completes the restored rows and removes the mark that refuses starts. */
async function finish(config: pg.ClientConfig, manifest: Manifest, options: RestoreOptions): Promise<void> {
  const { db, close } = openDatabase({ config: { ...config, max: 1 } });
  try {
    await db.transaction().execute(async (transaction) => {
      await options.finish(transaction, manifest);
      await transaction.schema.dropTable(UNFINISHED_RESTORE).execute();
    });
  } finally {
    await close();
  }
}
