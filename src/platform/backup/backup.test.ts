import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type NetConnectOpts } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { newId, newOrderedId } from '#kernel/ids.ts';
import { BackupRefused, dumpDatabase, restoreDatabase, type RestoreOptions } from '#platform/backup/index.ts';
import { openDatabase, type OpenDatabase } from '#platform/database/index.ts';
import { migrate } from '#platform/database/migrate.ts';
import { AUDIT_KEY, createVault } from '#platform/vault/index.ts';
import { openInstallation } from '#platform/vault/key.ts';
import { cloneDatabase } from '#test/harness/database.ts';
import { listSchema } from '#test/harness/schema.ts';

// A restore applies every migration: that takes its time where the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

const KEY = randomBytes(32);
const folder = mkdtempSync(path.join(tmpdir(), 'qd-backup-'));
let source: Awaited<ReturnType<typeof cloneDatabase>>;
let open: OpenDatabase;
let installationId: string;
const organizationId = newId();

beforeAll(async () => {
  source = await cloneDatabase(inject('postgres'), inject('template'));
  open = openDatabase({ config: { ...source.config, max: 10 } });
  const { vault, installationId: id } = await openInstallation(open.db, [KEY]);
  installationId = id;
  await open.db
    .insertInto('organization')
    .values({ id: organizationId, name: "O'Reilly \\ tab\t新", data_key: vault.newDataKey(organizationId) })
    .execute();
});
afterAll(async () => {
  await open.close();
  await source.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes a project with its event in one transaction. */
async function writeProject(name: string, at = new Date()): Promise<void> {
  const id = newId();
  await open.db.transaction().execute(async (db) => {
    await db.insertInto('project').values({ id, organization_id: organizationId, name }).execute();
    await db
      .insertInto('audit_event')
      .values({
        id: newOrderedId(at.getTime()),
        organization_id: organizationId,
        at,
        event_type: 'CREATE',
        target_type: 'PROJECT',
        target_id: id,
        target_name: name,
        project_id: id,
        project_name: name,
        triggered_by: 'test',
        origin: 'API',
      })
      .execute();
    await db
      .insertInto('outbox')
      .values({ organization_id: organizationId, topic: 'test', payload: '{"a": [1]}' })
      .execute();
  });
}

const addressOf = ({ host = '', port = 5432 }: pg.ClientConfig): NetConnectOpts =>
  host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };

const fileOf = (name: string) => path.join(folder, `${name}.backup`);

/** An empty database of its own, dropped after the work. */
async function inEmpty(work: (config: pg.ClientConfig) => Promise<void>): Promise<void> {
  const name = `r_${randomBytes(6).toString('hex')}`;
  const { postgres } = { postgres: inject('postgres') };
  await query(postgres, `create database ${name}`);
  try {
    await work({ ...postgres, database: name });
  } finally {
    await query(postgres, `drop database ${name} with (force)`);
  }
}

async function query(config: pg.ClientConfig, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const restore = (config: pg.ClientConfig, file: string, options: Partial<RestoreOptions> = {}) =>
  restoreDatabase(config, file, { vaultKeys: [KEY], finish: async () => undefined, ...options });

/** Every row of every table as text, without what says when migrations were applied. */
async function contents(config: pg.ClientConfig): Promise<Record<string, unknown>> {
  const tables = await query(
    config,
    `select relname::text as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
      and not relispartition and relname <> 'schema_migration' order by 1`,
  );
  const all: Record<string, unknown> = {};
  for (const { name } of tables)
    all[String(name)] = await query(config, `select t::text as row from "${String(name)}" t order by 1`);
  return all;
}

describe('a backup', () => {
  test('restores to the same rows, schema, partitions and sequences, whose next values are new', async () => {
    await query(
      source.config,
      `create table audit_event_2020_01 partition of audit_event for values from ('2020-01-01') to ('2020-02-01')`,
    );
    await writeProject('old', new Date('2020-01-15T00:00:00Z'));
    await writeProject('new');
    await query(source.config, `select nextval('worker_number'), nextval('worker_number')`);
    const manifest = await dumpDatabase(source.config, fileOf('same'), '1.2.3');
    expect(manifest).toMatchObject({ release: '1.2.3', installation: { id: installationId, epoch: 1 } });
    expect(statSync(fileOf('same')).mode & 0o777).toBe(0o600);
    await inEmpty(async (config) => {
      await restore(config, fileOf('same'));
      expect(await contents(config)).toEqual(await contents(source.config));
      expect(await listSchema(config)).toBe(await listSchema(source.config));
      expect(await query(config, 'select count(*)::int as n from audit_event_2020_01')).toEqual([{ n: 1 }]);
      expect(await query(config, `select nextval('worker_number')::int as n`)).toEqual([{ n: 3 }]);
      const [{ max }] = (await query(config, 'select max(id)::int from outbox')) as [{ max: number }];
      const [{ id }] = (await query(
        config,
        `insert into outbox (organization_id, topic, payload) values ('${organizationId}', 'x', '{}') returning id::int`,
      )) as [{ id: number }];
      expect(id).toBeGreaterThan(max);
      expect(await migrate(config)).toEqual([]);
    });
  });

  test('counts the rows of each table, also where PostgreSQL sends the number a moment later than the rows', async () => {
    const COPY_DONE = Buffer.from([0x63, 0, 0, 0, 4]);
    const slow = createServer((socket) => {
      const there = connect(addressOf(source.config));
      const split = new Transform({
        async transform(bytes: Buffer, _, done) {
          const at = bytes.indexOf(COPY_DONE) + COPY_DONE.length;
          if (at < COPY_DONE.length) return done(null, bytes);
          this.push(bytes.subarray(0, at));
          await sleep(5);
          done(null, bytes.subarray(at));
        },
      });
      socket.on('error', () => there.destroy()).pipe(there);
      there
        .on('error', () => socket.destroy())
        .pipe(split)
        .pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(slow, 'listening');
    const { port } = slow.address() as AddressInfo;
    await writeProject('counted');
    const { tables } = await dumpDatabase({ ...source.config, host: '127.0.0.1', port }, fileOf('slow'), '1.2.3');
    slow.close();
    const counts = new Map(tables.map(({ name, rows }) => [name, rows]));
    const [{ projects }] = (await query(source.config, 'select count(*)::int as projects from project')) as [
      { projects: number },
    ];
    expect(counts.get('project')).toBe(projects);
    expect(tables.filter(({ rows, parts }) => (rows === 0) !== (parts.length === 0))).toEqual([]);
  });

  test('taken while others write holds what was acknowledged before, and of the rest whole transactions only', async () => {
    let running = true;
    let written = 0;
    const writers = Array.from({ length: 6 }, async (_, writer) => {
      for (let n = 0; running; n++) {
        await writeProject(`w${writer} ${n}`);
        written++;
      }
    });
    await expect.poll(() => written).toBeGreaterThan(100);
    const before = await open.db.selectFrom('project').select('name').execute();
    await dumpDatabase(source.config, fileOf('load'), '1.2.3');
    running = false;
    await Promise.all(writers);
    await inEmpty(async (config) => {
      await restore(config, fileOf('load'));
      const rows = await query(config, 'select name from project');
      const names = new Set(rows.map(({ name }) => name));
      expect(before.filter(({ name }) => !names.has(name))).toEqual([]);
      expect(
        await query(
          config,
          'select id from audit_event e where not exists (select from project p where p.id = e.project_id)',
        ),
      ).toEqual([]);
      expect(
        await query(
          config,
          'select id from project p where not exists (select from audit_event e where e.project_id = p.id)',
        ),
      ).toEqual([]);
      expect(await query(config, 'select count(*)::int as n from outbox')).toEqual([{ n: names.size }]);
    });
  });

  test('is refused where a file of that name is, and a failed one leaves no file behind', async () => {
    writeFileSync(fileOf('there'), 'precious');
    await expect(dumpDatabase(source.config, fileOf('there'), '1')).rejects.toThrow(/is there already/);
    expect(readFileSync(fileOf('there'), 'utf8')).toBe('precious');
    await inEmpty(async (config) => {
      await expect(dumpDatabase(config, fileOf('nothing'), '1')).rejects.toThrow('nothing to back up');
    });
    await expect(dumpDatabase(source.config, path.join(folder, 'no', 'folder'), '1')).rejects.toThrow('ENOENT');
    expect(readdirSync(folder).filter((name) => name.endsWith('.part') || name.startsWith('nothing'))).toEqual([]);
  });
});

test('a backup names every key of the vault that something in it needs', async () => {
  const [one, other] = [randomBytes(32), randomBytes(32)];
  const [first, second] = [createVault([one]), createVault([other])];
  const id = newId();
  await open.db
    .insertInto('organization')
    .values({ id, name: id, data_key: first.newDataKey(id) })
    .execute();
  const { audit_key } = await open.db.selectFrom('installation').select('audit_key').executeTakeFirstOrThrow();
  await open.db
    .updateTable('installation')
    .set({ audit_key: second.sealOwn(AUDIT_KEY, 'x') })
    .execute();
  const { vaultKeys } = await dumpDatabase(source.config, fileOf('keys'), '1');
  expect(vaultKeys).toEqual([KEY, one, other].map((key) => createVault([key]).keyIds()[0]).sort());
  await open.db.updateTable('installation').set({ audit_key }).execute();
  await open.db.deleteFrom('organization').where('id', '=', id).execute();
});

describe('a restore', () => {
  const given = async (name: string) => {
    await dumpDatabase(source.config, fileOf(name), '1.2.3');
    return readFileSync(fileOf(name));
  };

  /** Whatever is refused must leave the database as empty as it was. */
  const refused = (file: string, message: RegExp, options: Partial<RestoreOptions> = {}) =>
    inEmpty(async (config) => {
      const failure = await restore(config, file, options).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(BackupRefused);
      expect(String(failure)).toMatch(message);
      expect(await query(config, `select relname from pg_class where relnamespace = 'public'::regnamespace`)).toEqual(
        [],
      );
    });

  test('refuses another key of the vault before it writes anything', async () => {
    await given('key');
    await refused(fileOf('key'), /The key of the vault is not the one that the backup was made with/, {
      vaultKeys: [randomBytes(32)],
    });
  });

  test('takes the right key where it is not the first of the file', async () => {
    await given('second');
    await inEmpty(
      async (config) => void (await restore(config, fileOf('second'), { vaultKeys: [randomBytes(32), KEY] })),
    );
  });

  test('refuses a damaged file wherever the damage is: cut off, a bit changed, a part gone, no backup at all', async () => {
    const whole = await given('whole');
    const file = fileOf('damaged');
    for (const share of [0.2, 0.5, 0.9]) {
      writeFileSync(file, whole.subarray(0, Math.floor(whole.length * share)));
      await refused(file, /is damaged/);
      const changed = Buffer.from(whole);
      // In the middle of content: what pads the blocks of a tar carries nothing.
      const at = nonZeroFrom(changed, Math.floor(whole.length * share));
      changed[at]! ^= 1;
      writeFileSync(file, changed);
      await refused(file, /is damaged/);
    }
    writeFileSync(file, randomBytes(5000));
    await refused(file, /is damaged|is no backup/);
    writeFileSync(file, '');
    await refused(file, /is no backup/);
    await refused(path.join(folder, 'nowhere'), /cannot be read: ENOENT/);
  });

  test('refuses a newer format and says which release to take', async () => {
    const whole = await given('format');
    const newer = whole.toString('latin1').replace('"format": 1', '"format": 2').replace('1.2.3', '9.9.9');
    writeFileSync(fileOf('format'), Buffer.from(newer, 'latin1'));
    await refused(fileOf('format'), /format 2.*release 9\.9\.9/);
  });

  test('refuses a backup with a migration that this release does not know', async () => {
    await given('migration');
    const few = mkdtempSync(path.join(folder, 'migrations-'));
    writeFileSync(path.join(few, '0001_one.sql'), 'select 1');
    await refused(fileOf('migration'), /0001_organization\.sql of this release is not the one/, { migrations: few });
    rmSync(path.join(few, '0001_one.sql'));
    await refused(fileOf('migration'), /newer release \(1\.2\.3, which has the migration 0001_/, { migrations: few });
  });

  test('refuses a database with anything in it and leaves that alone', async () => {
    await given('full');
    await inEmpty(async (config) => {
      await query(config, 'create table mine (id integer)');
      await expect(restore(config, fileOf('full'))).rejects.toThrow(/not empty.*DATABASE_URL.*QUARTERDECK_DATA_DIR/);
      expect(await query(config, `select tablename from pg_tables where schemaname = 'public'`)).toEqual([
        { tablename: 'mine' },
      ]);
    });
    await expect(restore(source.config, fileOf('full'))).rejects.toThrow('not empty');
  });

  test('that was broken off at its end keeps starts out, and begins anew when it is asked for again', async () => {
    await given('again');
    await inEmpty(async (config) => {
      const finish = () => Promise.reject(new Error('broken off'));
      await expect(restore(config, fileOf('again'), { finish })).rejects.toThrow('broken off');
      await expect(migrate(config)).rejects.toThrow('run `quarterdeck restore FILE` again');
      await expect(dumpDatabase(config, fileOf('half'), '1')).rejects.toThrow('nothing to back up');
      await restore(config, fileOf('again'));
      expect(await migrate(config)).toEqual([]);
      expect(await contents(config)).toEqual(await contents(source.config));
    });
  });

  test('needs no superuser, and neither does a backup', async () => {
    await given('plain');
    const role = `plain_${randomBytes(6).toString('hex')}`;
    const server = inject('postgres');
    await query(server, `create role ${role} login password 'plain'`);
    await query(server, `create database ${role} owner ${role}`);
    try {
      const config = { ...server, database: role, user: role, password: 'plain' };
      await restore(config, fileOf('plain'));
      await dumpDatabase(config, fileOf('plain-again'), '1.2.3');
      await inEmpty(async (empty) => {
        await restore(empty, fileOf('plain-again'));
        expect(await contents(empty)).toEqual(await contents(source.config));
      });
    } finally {
      await query(server, `drop database ${role} with (force)`);
      await query(server, `drop role ${role}`);
    }
  });

  test('brings a backup of an older release up to this one', async () => {
    await given('older');
    await inEmpty(async (config) => {
      const newer = mkdtempSync(path.join(folder, 'newer-'));
      const own = path.join(import.meta.dirname, '../../../migrations');
      for (const name of readdirSync(own)) writeFileSync(path.join(newer, name), readFileSync(path.join(own, name)));
      writeFileSync(
        path.join(newer, '9000_later.sql'),
        `alter table project add column later text not null default 'x'; update project set later = name;`,
      );
      await restore(config, fileOf('older'), { migrations: newer });
      expect(await query(config, `select count(*)::int as n from project where later <> name`)).toEqual([{ n: 0 }]);
      expect(await query(config, `select count(*)::int as n from project where later = name`)).not.toEqual([{ n: 0 }]);
    });
  });
});

function nonZeroFrom(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0) at++;
  return at;
}
