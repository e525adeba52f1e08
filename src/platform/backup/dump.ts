import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { ArchiveWriter } from '#platform/backup/archive-writer.ts';
import { isThere, listPartitions, listSequences, listTables, type CatalogTable } from '#platform/backup/catalog.ts';
import { BACKUP, BackupRefused, FORMAT, type Manifest, type TableDump } from '#platform/backup/format.ts';
import { UNFINISHED_RESTORE } from '#platform/database/migrate.ts';
import { openSession } from '#platform/backup/session.ts';
import { keyIdOf } from '#platform/vault/index.ts';

const LOCK_ATTEMPTS = 5;

/**
 * Writes a backup of the database into the file, while others go on writing into it: one snapshot, so that the dump is a state which
 * the database really had. The tables are locked against being changed in shape, as a migration would. The file has its name only when
 * it is whole. The signal breaks it off. Throws BackupRefused.
 */
export async function dumpDatabase(
  config: pg.ClientConfig,
  file: string,
  release: string,
  signal?: AbortSignal,
): Promise<Manifest> {
  const client = await openSession(config, 'quarterdeck backup', signal);
  try {
    const tables = await beginSnapshot(client);
    const archive = await ArchiveWriter.open(file, BACKUP, { format: FORMAT, release });
    try {
      const manifest = await fill(client, archive, tables, release);
      await archive.finish(manifest);
      return manifest;
    } catch (error) {
      await archive.abandon();
      throw error;
    }
  } finally {
    await client.end();
  }
}

/** Opens the snapshot with every table locked; a table that came or went in between begins it anew. */
async function beginSnapshot(client: pg.Client): Promise<CatalogTable[]> {
  for (let attempt = 1; ; attempt++) {
    if (await isThere(client, UNFINISHED_RESTORE))
      throw new BackupRefused('A restore into this database was broken off: there is nothing to back up.');
    if (!(await isThere(client, 'installation')))
      throw new BackupRefused('There is nothing to back up: the database has no installation of Quarterdeck.');
    const wanted = (await listTables(client)).map(({ name }) => client.escapeIdentifier(name));
    await client.query('begin transaction isolation level repeatable read read only');
    // A lock does not take the snapshot yet: what is read after it sees everything that was committed before.
    await client.query(`lock table ${[...wanted, 'schema_migration'].join(', ')} in access share mode`);
    const tables = await listTables(client);
    if (tables.map(({ name }) => client.escapeIdentifier(name)).join() === wanted.join()) return tables;
    await client.query('rollback');
    if (attempt === LOCK_ATTEMPTS) throw new BackupRefused('The tables change all the time: end the migration first.');
  }
}

async function fill(
  client: pg.Client,
  archive: ArchiveWriter,
  tables: CatalogTable[],
  release: string,
): Promise<Manifest> {
  const facts = await readFacts(client);
  const partitions = await listPartitions(client);
  const dumped: TableDump[] = [];
  for (const table of tables) dumped.push(await dumpTable(client, archive, table));
  return {
    format: FORMAT,
    release,
    ...facts,
    tables: dumped,
    partitions,
    sequences: await listSequences(client),
  };
}

async function dumpTable(client: pg.Client, archive: ArchiveWriter, table: CatalogTable): Promise<TableDump> {
  const columns = table.columns.map((column) => client.escapeIdentifier(column)).join(', ');
  const stream = client.query(copyTo(`copy (select ${columns} from ${client.escapeIdentifier(table.name)}) to stdout`));
  const parts = await archive.add(`data/${table.name}`, 'copy', stream);
  // The number of rows comes behind the last of them, in a message of its own: it is there once something else is answered.
  await client.query('select');
  return { name: table.name, columns: table.columns, rows: stream.rowCount, parts };
}

type Facts = Pick<Manifest, 'takenAt' | 'installation' | 'vaultKeys' | 'migrations'>;

async function readFacts(client: pg.Client): Promise<Facts> {
  // By name out of JSON: an older release's installation has no such column.
  const installations = await client.query<{
    id: string;
    epoch: number;
    canary: Buffer;
    audit_key: string | null;
    now: Date;
  }>(`select id, epoch, canary, to_jsonb(installation) ->> 'audit_key' as audit_key, now() as now from installation`);
  const installation = installations.rows[0];
  if (!installation?.canary)
    throw new BackupRefused('There is nothing to back up: the installation was never started.');
  const wrapped = await client.query<{ data_key: Buffer }>('select data_key from organization');
  const migrations = await client.query<{ version: number; name: string; checksum: string }>(
    'select version, name, checksum from schema_migration order by version',
  );
  const auditKey = installation.audit_key === null ? [] : [Buffer.from(installation.audit_key.slice(2), 'hex')];
  const keys = [installation.canary, ...auditKey, ...wrapped.rows.map((row) => row.data_key)].map(keyIdOf);
  return {
    takenAt: installation.now.toISOString(),
    installation: {
      id: installation.id,
      epoch: installation.epoch,
      canary: installation.canary.toString('base64'),
    },
    vaultKeys: [...new Set(keys)].sort(),
    migrations: migrations.rows,
  };
}
