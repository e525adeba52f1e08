import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { openDatabase, type OpenDatabase } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { AuditSealer, verifyAudit, Witness, type Verified } from '#platform/events/chain/index.ts';
import { SIGNED_COLUMNS } from '#platform/events/chain/sign.ts';
import { maintainEventPartitions } from '#platform/events/partitions.ts';
import { readSettings } from '#platform/settings/index.ts';
import { openInstallation } from '#platform/vault/key.ts';
import { rewrapOlder } from '#platform/vault/rotation.ts';
import { cloneDatabase } from '#test/harness/database.ts';

const KEY = randomBytes(32);
const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-chain-'));
let clone: Awaited<ReturnType<typeof cloneDatabase>>;
let open: OpenDatabase;
let platform: Platform;
let sealer: AuditSealer;
let now: Date | undefined;
let organizationId: string;

beforeAll(async () => {
  clone = await cloneDatabase(inject('postgres'), inject('template'));
  open = openDatabase({ config: { ...clone.config, max: 12 } });
  const { vault, epoch } = await openInstallation(open.db, [KEY]);
  platform = {
    db: open.db,
    vault,
    settings: readSettings({ QUARTERDECK_DATA_DIR: dataDir, QUARTERDECK_EVENT_RETENTION_DAYS: '60' }),
    clock: { now: () => now ?? new Date() },
    log: pino({ level: 'silent' }),
    notify: () => undefined,
  };
  sealer = new AuditSealer(platform, new Witness(dataDir, { epoch }));
});
beforeEach(() => {
  now = undefined;
  organizationId = newId();
});
afterAll(async () => {
  await open.close();
  await clone.drop();
  rmSync(dataDir, { recursive: true });
});

const run = (text: string, values: unknown[] = []) => open.pool.query(text, values);

/** Writes an event as the program does. */
const write = (name: string, more: object = {}, organization = organizationId) =>
  inTransaction(systemContext(platform, 'somebody'), (context) =>
    audit(context, {
      organizationId: organization,
      type: 'UPDATE',
      target: { type: 'PROJECT', id: newId(), name },
      project: { id: newId(), name: 'project' },
      before: { z: 1, a: [{ y: 'ä\u2028', b: null }], number: 1.5e-7, big: 12345678901 },
      after: { z: 2, a: [], text: '\ud83d\ude00', ...more },
    }),
  );

/** Sealed events, in their order. */
async function givenSealed(count = 5): Promise<string[]> {
  for (let n = 1; n <= count; n++) await write(`event ${n}`);
  await sealer.sealAll();
  return (await seals()).map((seal) => seal.event_id);
}

const seals = async () =>
  (
    await run('select sequence, event_id from audit_seal where organization_id = $1 order by sequence', [
      organizationId,
    ])
  ).rows as { sequence: number; event_id: string }[];

async function verify(): Promise<Verified> {
  for await (const verified of verifyAudit(platform, organizationId)) return verified;
  throw new Error('nothing was verified');
}

/** Returns the findings in short: kind, seal, and the number of the event among the given ones. */
const found = async (ids: string[]) =>
  (await verify()).findings.map(({ kind, sequence, eventId }) =>
    [kind, sequence, eventId && ids.indexOf(eventId) + 1].filter((part) => part !== undefined).join(' '),
  );

/** Runs statements as an intruder with access to the database would: no trigger sees them. */
async function tamper(...statements: [text: string, values?: unknown[]][]): Promise<void> {
  const client = new pg.Client(clone.config);
  await client.connect();
  await client.query('set session_replication_role = replica');
  for (const [text, values] of statements) await client.query(text, values);
  await client.end();
}

describe('audit events', () => {
  test('that nobody touched are as they were written, those of a moment ago too', async () => {
    const ids = await givenSealed(4);
    await write('not sealed yet');
    expect(await verify()).toMatchObject({ findings: [], events: 4, waiting: 1 });
    expect(ids).toHaveLength(4);
    await sealer.sealAll();
    expect(await verify()).toMatchObject({ findings: [], events: 5, waiting: 0 });
  });

  test('are signed with every column that they have', async () => {
    const { rows } = await run(
      "select column_name as name from information_schema.columns where table_schema = 'public' and table_name = 'audit_event'",
    );
    const columns = (rows as { name: string }[]).map(({ name }) => name).sort();
    expect([...SIGNED_COLUMNS, 'at', 'mac'].sort()).toEqual(columns);
  });

  test('tell of a change of any column', async () => {
    const { rows } = await run(
      "select column_name as name, udt_name as type from information_schema.columns where table_schema = 'public' and table_name = 'audit_event'",
    );
    const OTHER: Record<string, string> = {
      uuid: 'gen_random_uuid()',
      text: "'other'",
      jsonb: `'{"z": 3}'`,
      timestamptz: "at + interval '1 microsecond'",
      bytea: "'\\x01'",
    };
    for (const { name, type } of rows as { name: string; type: string }[]) {
      organizationId = newId();
      const ids = await givenSealed(3);
      await tamper([`update audit_event set "${name}" = ${OTHER[type]} where id = $1`, [ids[1]]]);
      const findings = await found(ids);
      expect(findings, name).not.toEqual([]);
      expect(findings[0], name).toMatch(/^(?:changed|missing) 2 2$/);
    }
  });

  test('tell of a value that was set to null, and of a part of a view', async () => {
    const ids = await givenSealed(3);
    await tamper(
      ['update audit_event set change = null where id = $1', [ids[0]]],
      [`update audit_event set original_change = original_change || '{"big": 12345678902}' where id = $1`, [ids[2]]],
    );
    expect(await found(ids)).toEqual(['changed 1 1', 'changed 3 3']);
  });

  test.each([
    ['the first', 0],
    ['one in the middle', 2],
    ['the last', 4],
  ])('tell of %s that is gone, and which it was', async (_which, index) => {
    const ids = await givenSealed();
    await tamper(['delete from audit_event where id = $1', [ids[index]]]);
    expect(await found(ids)).toEqual([`missing ${index + 1} ${index + 1}`]);
  });

  test.each([1, 3, 5])('tell of the place of number %i that is gone with its seal', async (sequence) => {
    const ids = await givenSealed();
    await tamper(
      ['delete from audit_event where id = $1', [ids[sequence - 1]]],
      ['delete from audit_seal where organization_id = $1 and sequence = $2', [organizationId, sequence]],
    );
    expect(await found(ids)).toEqual([`missing ${sequence}`]);
  });

  test('tell of a tail that is gone with its seals, also when the record of the end was changed', async () => {
    const ids = await givenSealed();
    await tamper(
      ['delete from audit_event where id = any($1)', [ids.slice(3)]],
      ['delete from audit_seal where organization_id = $1 and sequence > 3', [organizationId]],
    );
    expect(await found(ids)).toEqual(['missing 4', 'missing 5']);
    await tamper([
      `update audit_chain set sequence = 3, hash = (select hash from audit_seal s where s.organization_id = $1 and s.sequence = 3)
       where organization_id = $1`,
      [organizationId],
    ]);
    expect(await found(ids)).toEqual(['cut', 'cut 5']);
  });

  test('tell of an older state of the whole database that was put back, on the machine that sealed', async () => {
    await givenSealed(2);
    const { rows } = await run('select * from audit_chain where organization_id = $1', [organizationId]);
    const older = rows[0] as { sequence: number; hash: Buffer; mac: Buffer };
    const ids = await givenSealed(2);
    await tamper(
      ['delete from audit_event where id = any($1)', [ids.slice(2)]],
      ['delete from audit_seal where organization_id = $1 and sequence > 2', [organizationId]],
      [
        'update audit_chain set sequence = 2, hash = $2, mac = $3 where organization_id = $1',
        [organizationId, older.hash, older.mac],
      ],
    );
    expect(await found(ids)).toEqual(['cut 4']);
    // Gone on from there, the chain is as long as it was, and still another one.
    await write('another history');
    await write('another history');
    await new AuditSealer(platform).sealAll();
    expect(await found(ids)).toEqual(['cut 4']);
  });

  test('tell of an organization of which everything is gone', async () => {
    await givenSealed(3);
    for (const table of ['audit_event', 'audit_seal', 'audit_chain'])
      await tamper([`delete from ${table} where organization_id = $1`, [organizationId]]);
    const all: string[] = [];
    for await (const { findings } of verifyAudit(platform))
      all.push(...findings.map((one) => `${one.organizationId} ${one.kind}`));
    expect(all).toContain(`${organizationId} cut`);
  });

  test('tell of two that changed places', async () => {
    const ids = await givenSealed();
    await tamper([
      `update audit_seal set event_id = case sequence when 2 then $2::uuid else $3 end, event_at = (
         select at from audit_event where id = case sequence when 2 then $2::uuid else $3 end)
       where organization_id = $1 and sequence in (2, 4)`,
      [organizationId, ids[3], ids[1]],
    ]);
    expect(await found(ids)).toEqual(['reordered 2 4', 'reordered 4 2']);
  });

  test('tell of one that was moved in time, or to another organization', async () => {
    const ids = await givenSealed(3);
    await tamper(
      ["update audit_event set at = at + interval '1 hour' where id = $1", [ids[0]]],
      ['update audit_event set organization_id = $2 where id = $1', [ids[1], newId()]],
    );
    expect((await found(ids)).sort()).toEqual(['changed 2 2', 'missing 1 1', 'unsealed 1']);
  });

  test('tell of one that somebody else put in, whether it was sealed or not', async () => {
    const ids = await givenSealed(2);
    const [first, second] = [newId(), newId()];
    const insert = `insert into audit_event (id, organization_id, at, event_type, target_type, target_name, triggered_by, origin)
      values ($1, $2, now(), 'DELETE', 'PROJECT', 'x', 'nobody', 'API')`;
    await run(insert, [first, organizationId]);
    await tamper([insert, [second, organizationId]]);
    const both = [...ids, first, second];
    expect(await found(both)).toEqual(['unsigned 3', 'unsealed 4']);
    await sealer.sealAll();
    expect(await found(both)).toEqual(['unsigned 3 3', 'unsealed 4']);
  });

  test('of before the chain are counted: nothing tells of a change of them', async () => {
    await givenSealed(1);
    await tamper([
      `insert into audit_event (id, organization_id, at, event_type, target_type, target_name, triggered_by, origin)
       values (gen_random_uuid(), $1, '2001-01-01', 'DELETE', 'PROJECT', 'x', 'nobody', 'API')`,
      [organizationId],
    ]);
    expect(await verify()).toMatchObject({ findings: [], events: 1, before: 1 });
  });

  test('tell of one that was copied with its signature', async () => {
    const ids = await givenSealed(2);
    await tamper([
      `insert into audit_event select (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(), 'at', now()))).* from audit_event e where id = $1`,
      [ids[0]],
    ]);
    expect((await verify()).findings.map(({ kind }) => kind)).toEqual(['unsealed']);
  });

  test('tell of one that went before it was sealed, and of one that waits for too long', async () => {
    await write('gone');
    await write('waits');
    await tamper(["delete from audit_event where organization_id = $1 and target_name = 'gone'", [organizationId]]);
    expect((await verify()).findings.map(({ kind }) => kind)).toEqual(['missing']);
    now = new Date(Date.now() + 3_600_000);
    expect((await verify()).findings.map(({ kind }) => kind).sort()).toEqual(['missing', 'unsealed']);
  });

  test('are not sealed onto a chain that was tampered with, which would make it look sound', async () => {
    const ids = await givenSealed(2);
    await tamper(['delete from audit_seal where organization_id = $1 and sequence = 2', [organizationId]]);
    await write('afterwards');
    await sealer.sealAll();
    expect(await seals()).toHaveLength(1);
    expect(await verify()).toMatchObject({ waiting: 1 });
    expect(await found(ids)).toContain('missing 2');
  });
});

describe('the chain', () => {
  test('has every event once, in one order, while many write and several processes seal', async () => {
    const others = [newId(), newId()];
    const sealers = [sealer, new AuditSealer(platform), new AuditSealer(platform)];
    let writing = true;
    const writers = Array.from({ length: 6 }, async (_, writer) => {
      for (let n = 0; n < 40; n++) await write(`${writer} ${n}`, {}, [organizationId, ...others][n % 3]);
    });
    const sealing = sealers.map(async (one) => {
      while (writing) await one.sealAll();
    });
    await Promise.all(writers);
    writing = false;
    await Promise.all(sealing);
    await sealer.sealAll();
    expect((await seals()).map(({ sequence }) => sequence)).toEqual(Array.from({ length: 84 }, (_, n) => n + 1));
    for (const id of [organizationId, ...others])
      for await (const verified of verifyAudit(platform, id)) expect(verified).toMatchObject({ found: 0, waiting: 0 });
  });

  test('is whole after its sealer was killed again and again', async () => {
    const writing = (async () => {
      for (let n = 0; n < 400; n++) await write(`event ${n}`);
    })();
    for (let kill = 0; kill < 5; kill++) {
      const child = spawn(process.execPath, [path.join(import.meta.dirname, 'sealer.fixture.ts')]);
      child.stdin.end(JSON.stringify({ config: clone.config, key: KEY.toString('base64') }));
      await once(child.stdout, 'data');
      const before = (await seals()).length;
      await expect.poll(async () => (await seals()).length, { interval: 5 }).toBeGreaterThanOrEqual(before);
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    await writing;
    // PostgreSQL gives back the lock of a killed process once it sees that its connection is gone.
    const sealed = async () => {
      await sealer.sealAll();
      return verify();
    };
    await expect.poll(sealed).toMatchObject({ findings: [], events: 400, waiting: 0 });
  });

  test('does not wait for a long transaction, and seals its event when it ends', async () => {
    let done!: () => void;
    const ending = new Promise<void>((resolve) => (done = resolve));
    const long = inTransaction(systemContext(platform, 'slow'), async (context) => {
      await audit(context, { organizationId, type: 'UPDATE', target: { type: 'PROJECT', id: newId(), name: 'slow' } });
      await ending;
    });
    await givenSealed(2);
    done();
    await long;
    await sealer.sealAll();
    expect(await verify()).toMatchObject({ findings: [], events: 3 });
  });

  test('stays whole over a rotation of the key of the vault', async () => {
    await givenSealed(2);
    const next = randomBytes(32);
    const both = (await openInstallation(open.db, [next, KEY])).vault;
    await rewrapOlder(open.db, both);
    const alone = (await openInstallation(open.db, [next])).vault;
    platform = { ...platform, vault: alone };
    await write('after');
    await new AuditSealer(platform).sealAll();
    expect(await verify()).toMatchObject({ findings: [], events: 3 });
    await rewrapOlder(open.db, (await openInstallation(open.db, [KEY, next])).vault);
  });
});

describe('what the retention drops', () => {
  /** Events of January, February and April 2040, the last of them sealed before an earlier one. */
  async function givenYear(): Promise<void> {
    now = new Date('2039-12-31T00:00:00Z');
    for (const month of ['01', '02', '03', '04']) {
      now = new Date(`2040-${month}-02T00:00:00Z`);
      await maintainEventPartitions({ ...platform, settings: { ...platform.settings, eventRetentionDays: 10_000 } });
    }
    for (const day of ['2040-01-05', '2040-02-01', '2040-01-31', '2040-02-10', '2040-04-01']) {
      now = new Date(`${day}T00:00:00Z`);
      await write(day);
      await sealer.sealAll();
    }
  }

  test('is missed by nobody, and what is dropped by hand is', async () => {
    await givenYear();
    now = new Date('2040-04-10T00:00:00Z');
    expect(await verify()).toMatchObject({ findings: [], events: 5 });
    await maintainEventPartitions(platform);
    // 60 days before 10 April is 10 February: January is over.
    expect(await verify()).toMatchObject({ findings: [], events: 3 });
    // The second seal is of February, and stands before one that is dropped.
    expect((await seals()).map(({ sequence }) => sequence)).toEqual([2, 3, 4, 5]);
    await run('drop table audit_event_2040_02');
    expect((await verify()).findings.map(({ kind, sequence }) => `${kind} ${sequence}`)).toEqual([
      'missing 2',
      'missing 4',
    ]);
  });

  test('goes with its month of seals, and one by one where a seal of the month still counts', async () => {
    const partitions = async () =>
      (
        await run(`select inhrelid::regclass::text as name from pg_inherits where inhparent = 'audit_seal'::regclass
        and inhrelid::regclass::text like 'audit_seal_2040%' order by 1`)
      ).rows.map(({ name }) => name.slice(-2));
    await givenYear();
    now = new Date('2040-04-10T00:00:00Z');
    await maintainEventPartitions(platform);
    // January has the third seal too, and the second one, of February, stands before it.
    expect(await partitions()).toEqual(['01', '02', '03', '04', '05', '06']);
    now = new Date('2040-05-10T00:00:00Z');
    await maintainEventPartitions(platform);
    expect(await partitions()).toEqual(['03', '04', '05', '06', '07']);
    expect((await seals()).map(({ sequence }) => sequence)).toEqual([5]);
    expect(await verify()).toMatchObject({ findings: [], events: 1 });
  });

  test('is taken off the chains a few at a time, while others are sealed', async () => {
    const others = Array.from({ length: 250 }, () => newId());
    now = new Date('2041-01-05T00:00:00Z');
    for (const other of others) await write('early', {}, other);
    await sealer.sealAll();
    now = new Date('2041-04-10T00:00:00Z');
    await write('late');
    let over = false;
    const dropped = maintainEventPartitions(platform).finally(() => (over = true));
    while (!over) await sealer.sealAll();
    await dropped;
    expect(
      (await run('select count(*)::int as n from audit_seal where organization_id = any($1)', [others])).rows,
    ).toEqual([{ n: 0 }]);
    expect(
      (
        await run(
          'select count(*)::int as n from audit_chain where dropped_sequence = 1 and organization_id = any($1)',
          [others],
        )
      ).rows,
    ).toEqual([{ n: 250 }]);
    expect(await verify()).toMatchObject({ findings: [], events: 1 });
  });

  test('cannot be pretended by changing the record of it', async () => {
    await givenYear();
    await tamper(
      ["delete from audit_event where organization_id = $1 and at < '2040-02-01'", [organizationId]],
      ["update audit_chain set dropped_before = '2040-02-01' where organization_id = $1", [organizationId]],
    );
    expect((await verify()).findings.map(({ kind, sequence }) => `${kind} ${sequence}`)).toEqual([
      'cut undefined',
      'missing 1',
      'missing 3',
    ]);
  });
});
