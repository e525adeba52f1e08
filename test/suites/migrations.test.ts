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
});
