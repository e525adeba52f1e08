import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { migrate, readMigrations } from '#platform/database/migrate.ts';
import { cloneDatabase } from '#test/harness/database.ts';
import { listSchema } from '#test/harness/schema.ts';

const FOLDER = path.join(import.meta.dirname, '../../migrations');

let clone: Awaited<ReturnType<typeof cloneDatabase>>;
let folder: string;
beforeAll(async () => {
  clone = await cloneDatabase(inject('postgres'), inject('template'));
  folder = await mkdtemp(path.join(tmpdir(), 'qd-migrations-'));
});
afterAll(async () => {
  await clone.drop();
  await rm(folder, { recursive: true, force: true });
});

/** Makes a folder of migrations like the real one, with one file changed or added. */
async function givenFolder(name: string, change: (text: string) => string): Promise<string> {
  const made = await mkdtemp(path.join(folder, 'm-'));
  await cp(FOLDER, made, { recursive: true });
  const file = path.join(made, name);
  const text = (await readMigrations(FOLDER)).some((migration) => migration.name === name)
    ? await readFile(file, 'utf8')
    : '';
  await writeFile(file, change(text));
  return made;
}

async function tables(): Promise<unknown[]> {
  const client = new pg.Client(clone.config);
  await client.connect();
  try {
    return (await client.query('select * from schema_migration order by version')).rows;
  } finally {
    await client.end();
  }
}

describe('migrations', () => {
  test('lead to the schema of migrations/schema.sql', async () => {
    const written = await readFile(path.join(FOLDER, 'schema.sql'), 'utf8');
    const made = await listSchema(clone.config);
    expect(made, 'migrations/schema.sql is not what the migrations make: run `npm run gen`').toBe(written);
  });

  test('change nothing when they are applied again', async () => {
    const [schema, applied] = [await listSchema(clone.config), await tables()];
    expect(await migrate(clone.config)).toEqual([]);
    expect(await listSchema(clone.config)).toBe(schema);
    expect(await tables()).toEqual(applied);
  });

  test('are refused when one that was applied has changed since', async () => {
    const first = (await readMigrations(FOLDER))[0]!;
    const changed = await givenFolder(first.name, (text) => `${text}\n-- changed`);
    await expect(migrate(clone.config, changed)).rejects.toThrow(first.name);
  });

  test('of a newer release are borne unless they are breaking', async () => {
    const addition = '9000_addition.sql';
    const newer = await givenFolder(addition, () => 'create table an_addition (id integer);');
    expect(await migrate(clone.config, newer)).toEqual([addition]);
    expect(await migrate(clone.config)).toEqual([]);

    const breaking = '9001_breaking.sql';
    await writeFile(path.join(newer, breaking), '-- breaking\ndrop table an_addition;');
    expect(await migrate(clone.config, newer)).toEqual([breaking]);
    await expect(migrate(clone.config)).rejects.toThrow(`newer release (${breaking})`);
  });

  test('take pull requests whose head is no branch for those of forks, and have their previews looked at', async () => {
    const branches = [
      'feature',
      'refs/heads/feature',
      'refs/tags/v1',
      'refs/pull/7/head',
      'refs/merge-requests/7/head',
    ];
    await migrateRows(397, async (rows) => {
      for (const [at, branch] of branches.entries()) {
        const columns =
          'id, organization_id, repository, number, state, is_fork, is_labelled, head_branch, head_commit, base_branch, base_is_default, changed_at';
        const request = `insert into pull_request (${columns}) values (gen_random_uuid(), gen_random_uuid(), 'r', $1, 'OPEN', false, false, $2, 'c', 'main', true, now())`;
        await rows.query(request, [at, branch]);
      }
      await rows.query(`insert into preview (id, organization_id, pull_request_id, source_id, wanted, status, ended_at)
        select gen_random_uuid(), organization_id, id, gen_random_uuid(), 'PRESENT', 'ENDED', now() from pull_request`);
      return async () => {
        const found = await rows.query(`select r.head_branch, r.is_fork, p.status from pull_request r
          join preview p on p.pull_request_id = r.id order by r.number`);
        expect(found.rows.map(({ head_branch, is_fork, status }) => [head_branch, is_fork, status])).toEqual(
          branches.map((branch, at) => [branch, at > 2, at > 2 ? 'WAITING' : 'ENDED']),
        );
      };
    });
  });

  test('leave nothing behind of one that fails', async () => {
    const own = await cloneDatabase(inject('postgres'), inject('template'));
    try {
      const before = await listSchema(own.config);
      const failing = await givenFolder('9002_failing.sql', () => 'create table half (id integer); select nothing();');
      await expect(migrate(own.config, failing)).rejects.toThrow('9002_failing.sql');
      expect(await listSchema(own.config)).toBe(before);
    } finally {
      await own.drop();
    }
  });

  test('know the backups beside the code of a fork that were made before backups had the mark', async () => {
    await migrateRows(398, async (rows) => {
      await rows.query(`insert into environment (id, organization_id, project_id, cluster_id, name, mode, fork_ref, fork_commit)
        select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), name, 'PREVIEW', ref, commit
        from (values ('fork', 'refs/pull/7/head', 'c'), ('normal', null, null)) as e(name, ref, commit)`);
      await rows.query(`insert into database_backup (id, organization_id, database_id, database_name, project_id, project_name,
          environment_id, environment_name, environment_mode, name, message, origin, type, version, format, extension, leaves_out, key, requested_by_name)
        select gen_random_uuid(), organization_id, gen_random_uuid(), 'd', project_id, 'p', id, name, mode, name, '', 'DAILY', 'POSTGRESQL', '16', 'f', 'e', '{}', '', 'system'
        from (select organization_id, project_id, id, name, mode from environment
          union all select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'gone', 'PREVIEW') as e`);
      return async () => {
        const found = await rows.query('select name, of_fork from database_backup order by name');
        expect(found.rows).toEqual([
          { name: 'fork', of_fork: true },
          { name: 'gone', of_fork: false },
          { name: 'normal', of_fork: false },
        ]);
      };
    });
  });
});

/**
 * Applies the migrations from `version` on to rows from before them. `fill` writes the rows, without their parents, and returns what is
 * called afterwards.
 */
async function migrateRows(version: number, fill: (rows: pg.Client) => Promise<() => Promise<void>>): Promise<void> {
  const before = await mkdtemp(path.join(folder, 'm-'));
  for (const one of await readMigrations(FOLDER))
    if (one.version < version) await cp(path.join(FOLDER, one.name), path.join(before, one.name));
  const client = new pg.Client(clone.config);
  await client.connect();
  const own = { ...clone.config, database: `before_${version}` };
  await client.query(`create database ${own.database} template template0`);
  try {
    await migrate(own, before);
    const rows = new pg.Client(own);
    await rows.connect();
    try {
      await rows.query('set session_replication_role = replica');
      const look = await fill(rows);
      await migrate(own);
      await look();
    } finally {
      await rows.end();
    }
  } finally {
    await client.query(`drop database ${own.database}`);
    await client.end();
  }
}
