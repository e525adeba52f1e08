import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import type { StreamFilter, StreamItem } from '#platform/events/stream.ts';
import { createEventStreams, removeOldStreamEvents } from '#delivery/stream/index.ts';
import { ensureLine } from '#delivery/stream/line.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();

type Streams = ReturnType<typeof createEventStreams>;
let writers: pg.Pool;
const made: Streams[] = [];
const clients: Client[] = [];
/** Starts the reader of one more process. */
function startProcess(): Streams {
  const streams = createEventStreams({
    platform: app.platform,
    directConfig: app.databaseConfig,
    channels: ['told'],
    pauseMs: 50,
  });
  made.push(streams);
  return streams;
}
beforeAll(() => {
  writers = new pg.Pool({ ...app.databaseConfig, max: 40 });
  writers.on('error', () => undefined); // A connection that was ended on purpose.
});
afterEach(async () => void (await Promise.all(clients.splice(0).map((client) => client.leave()))));
afterAll(async () => {
  await Promise.all(made.map((streams) => streams.close()));
  await writers.end();
});

const AUDIT = ['audit'] as const;
const everything = (organizationId: string): StreamFilter => ({ organizationId, types: AUDIT });

const INSERT = `insert into audit_event (id, organization_id, event_type, target_type, target_id, target_name, triggered_by, origin)
  select gen_random_uuid(), $1, 'UPDATE', 'PROJECT', gen_random_uuid(), $2 || n, 'ada', 'API' from generate_series(1, $3::int) n`;

const write = (organizationId: string, name: string, count = 1, by: pg.Pool | pg.PoolClient = writers) =>
  by.query(INSERT, [organizationId, name, count]);

/** A client that reads until it is told to leave. */
class Client {
  readonly names: string[] = [];
  readonly missing: string[] = [];
  cursor: string | undefined;
  /** Held while the client is slow. */
  gate: Promise<void> | undefined;
  readonly #leave = new AbortController();
  readonly #reading: Promise<void>;

  constructor(streams: Streams, filter: StreamFilter, cursor?: string) {
    clients.push(this);
    this.#reading = this.#read(streams.open(filter, cursor, () => true, this.#leave.signal));
  }

  async #read(stream: AsyncIterable<StreamItem[]>): Promise<void> {
    for await (const items of stream) {
      for (const { cursor, row, missing } of items) {
        this.cursor = cursor;
        if (missing) this.missing.push(missing);
        if (row) this.names.push(row.audit.target_name);
      }
      if (this.names.length > 0) await this.gate;
    }
  }

  async until(done: () => boolean): Promise<void> {
    for (const end = Date.now() + 40_000; !done(); await sleep(2))
      if (Date.now() > end) throw new Error(`Not in time: ${this.names.length} events, ${this.names.slice(-3).join()}`);
  }

  /** Leaves; answers the cursor to resume from. */
  async leave(): Promise<string> {
    this.#leave.abort();
    await this.#reading;
    return this.cursor!;
  }
}

const opened = async (client: Client): Promise<Client> => {
  await client.until(() => client.cursor !== undefined);
  return client;
};

/** Names of an organization's events in the order in which streams tell them. */
const inOrder = async (organizationId: string): Promise<string[]> => {
  const { rows } = await writers.query(
    `select audit.target_name as name from stream_event event join audit_event audit on audit.id = event.audit_id
      where event.organization_id = $1 order by event.xid, event.id`,
    [organizationId],
  );
  return rows.map((row) => row.name);
};

const begun = async (): Promise<pg.PoolClient> => {
  const client = await writers.connect();
  await client.query('begin');
  return client;
};
const commit = async (client: pg.PoolClient, how = 'commit'): Promise<void> => {
  await client.query(how);
  client.release();
};

describe('a stream', () => {
  test('tells what is committed while it is open, and nothing that others were told before', async () => {
    const organizationId = newId();
    const earlier = await opened(new Client(startProcess(), everything(organizationId)));
    await write(organizationId, 'before');
    await earlier.until(() => earlier.names.length === 1);
    const client = await opened(new Client(startProcess(), everything(organizationId)));
    await write(organizationId, 'a', 3);
    await client.until(() => client.names.length >= 3);
    expect(client.names).toEqual(['a1', 'a2', 'a3']);
  });

  test('tells what a transaction wrote early and committed late, and keeps what came after it until then', async () => {
    const organizationId = newId();
    const client = await opened(new Client(startProcess(), everything(organizationId)));
    const late = await begun();
    await write(organizationId, 'late', 1, late);
    await write(organizationId, 'early');
    await sleep(300); // More than a poll: it was there to be read.
    expect(client.names).toEqual([]);
    await commit(late);
    await client.until(() => client.names.length === 2);
    expect(client.names).toEqual(['late1', 'early1']);
  });

  test('goes on when what held it up is rolled back, and tells nothing of that', async () => {
    const organizationId = newId();
    const client = await opened(new Client(startProcess(), everything(organizationId)));
    const undone = await begun();
    await write(organizationId, 'undone', 1, undone);
    await write(organizationId, 'a');
    await commit(undone, 'rollback');
    await client.until(() => client.names.length === 1);
    expect(client.names).toEqual(['a1']);
  });

  test('has neither gap nor double under writers that commit late, for clients that come and go on several processes', async () => {
    const [organizationId, other] = [newId(), newId()];
    const processes = [startProcess(), startProcess()];
    const steady = await opened(new Client(processes[0]!, everything(organizationId)));
    const from = steady.cursor!;
    let writing = true;
    const writer = async (name: string): Promise<void> => {
      for (let n = 0; n < 40; n++) {
        const transaction = await begun();
        await write(n % 3 ? organizationId : other, `${name}.${n}.`, 1 + (n % 4), transaction);
        await sleep((n * 7) % 23);
        await write(organizationId, `${name}.${n}+`, 1, transaction);
        await commit(transaction, n % 5 ? 'commit' : 'rollback');
      }
    };
    const traveller = async (): Promise<string[]> => {
      const names: string[] = [];
      let cursor = from;
      for (let visit = 0; writing || visit % 2; visit++) {
        const client = new Client(processes[visit % 2]!, everything(organizationId), cursor);
        await sleep(visit % 4 ? 15 : 60);
        await opened(client);
        cursor = await client.leave();
        names.push(...client.names);
      }
      const last = new Client(processes[0]!, everything(organizationId), cursor);
      const rest = (await inOrder(organizationId)).length - names.length;
      await last.until(() => last.names.length >= rest);
      await last.leave();
      return [...names, ...last.names];
    };
    const travellers = [traveller(), traveller(), traveller()];
    await Promise.all(Array.from({ length: 12 }, (_, index) => writer(String(index))));
    writing = false;
    const told = await Promise.all(travellers);
    const wanted = await inOrder(organizationId);
    await steady.until(() => steady.names.length >= wanted.length);
    expect(wanted.length).toBeGreaterThan(600);
    expect(steady.names).toEqual(wanted);
    for (const names of told) expect(names).toEqual(wanted);
  });

  test('that is read slowly falls behind alone: the others hear at once, it misses nothing and little of it is kept', async () => {
    const organizationId = newId();
    const streams = startProcess();
    const [slow, quick] = [
      await opened(new Client(streams, everything(organizationId))),
      await opened(new Client(streams, everything(organizationId))),
    ];
    let open = (): void => undefined;
    slow.gate = new Promise((resolve) => (open = resolve));
    await write(organizationId, 'first');
    await slow.until(() => slow.names.length === 1);
    for (let n = 0; n < 20; n++) await write(organizationId, `${n}.`, 200);
    await quick.until(() => quick.names.length === 4001);
    expect(slow.names.length).toBeLessThan(2);
    open();
    await slow.until(() => slow.names.length === 4001);
    expect(slow.names).toEqual(quick.names);
    expect(quick.names).toEqual(await inOrder(organizationId));
    await write(organizationId, 'last');
    await slow.until(() => slow.names.at(-1) === 'last1');
  });

  test('of one organization opened while others are read misses nothing', async () => {
    const streams = startProcess();
    await opened(new Client(streams, everything(newId())));
    const organizations = Array.from({ length: 20 }, () => newId());
    const clients: Client[] = [];
    for (const organizationId of organizations) {
      const client = await opened(new Client(streams, everything(organizationId)));
      clients.push(client);
      void write(organizationId, 'a', 2);
      await write(organizations[0]!, 'b');
    }
    for (const [index, client] of clients.entries()) {
      const wanted = await inOrder(organizations[index]!);
      await client.until(() => client.names.length >= Math.max(2, wanted.length));
      expect(client.names).toEqual(await inOrder(organizations[index]!));
      await client.leave();
    }
  });

  test('outlives every connection to the database', async () => {
    const organizationId = newId();
    const client = await opened(new Client(startProcess(), everything(organizationId)));
    for (const name of ['a', 'b', 'c']) {
      await writers.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      );
      await write(organizationId, name);
      await client.until(() => client.names.at(-1) === `${name}1`);
    }
    expect(client.names).toEqual(['a1', 'b1', 'c1']);
  });

  test('that hears nothing still moves on, so that its place does not age', async () => {
    const [organizationId, other] = [newId(), newId()];
    const client = await opened(new Client(startProcess(), everything(organizationId)));
    const before = client.cursor;
    await write(other, 'a');
    await client.until(() => client.cursor !== before);
    expect(client.names).toEqual([]);
  });
});

describe('a place that is not kept', () => {
  const old = () => writers.query(`update stream_event set at = now() - interval '3 days'`);

  test('is told, and the stream goes on from now; a place that is kept is not touched by the retention', async () => {
    const organizationId = newId();
    const streams = startProcess();
    const client = await opened(new Client(streams, everything(organizationId)));
    const aged = client.cursor!;
    await write(organizationId, 'a', 3);
    await client.until(() => client.names.length === 3);
    const kept = await client.leave();
    await old();
    expect(await removeOldStreamEvents(app.platform)).toBeGreaterThanOrEqual(3);
    await write(organizationId, 'b');
    const present = new Client(streams, everything(organizationId), kept);
    await present.until(() => present.names.length === 1);
    const late = new Client(streams, everything(organizationId), aged);
    await late.until(() => late.missing.length > 0);
    await write(organizationId, 'c');
    await late.until(() => late.names.includes('c1'));
    expect([late.missing, late.names]).toEqual([['REMOVED'], ['c1']]);
    await present.until(() => present.names.length === 2);
    expect([present.missing, present.names]).toEqual([[], ['b1', 'c1']]);
  });

  test('is removed in batches from the beginning up to the first event that is young', async () => {
    const organizationId = newId();
    const client = await opened(new Client(startProcess(), everything(organizationId)));
    await write(organizationId, 'old', 6_000);
    await write(organizationId, 'young', 2);
    await write(organizationId, 'behind', 1);
    await client.until(() => client.names.at(-1) === 'behind1');
    await client.leave();
    await old();
    await writers.query(
      `update stream_event event set at = now() from audit_event audit
        where audit.id = event.audit_id and audit.target_name like 'young%'`,
    );
    expect(await removeOldStreamEvents(app.platform)).toBeGreaterThanOrEqual(6_000);
    const { rows } = await writers.query('select count(*)::int as left from stream_event where organization_id = $1', [
      organizationId,
    ]);
    expect(rows).toEqual([{ left: 3 }]);
  });

  test('of a database before a restore is told, whatever its numbers are', async () => {
    const organizationId = newId();
    const before = await opened(new Client(startProcess(), everything(organizationId)));
    await write(organizationId, 'a');
    await before.until(() => before.names.length === 1);
    const cursor = await before.leave();
    await sql`update installation set epoch = epoch + 1`.execute(app.db);
    const restored = new Client(startProcess(), everything(organizationId), cursor);
    await restored.until(() => restored.missing.length > 0);
    await write(organizationId, 'b');
    await restored.until(() => restored.names.length > 0);
    expect([restored.missing, restored.names]).toEqual([['RESTORED'], ['b1']]);
  });

  test('is found by many processes at once, while old events are removed, and each of them goes on', async () => {
    const organizationId = newId();
    for (let round = 0; round < 20; round++) {
      await write(organizationId, 'a', 20);
      await sql`update installation set epoch = epoch + 1`.execute(app.db);
      const later = { ...app.platform, clock: { now: () => new Date(Date.now() + 48 * 3_600_000) } };
      await Promise.all([
        ...Array.from({ length: 8 }, () => ensureLine(app.db)),
        removeOldStreamEvents(later),
        removeOldStreamEvents(later),
      ]);
    }
    const client = await opened(new Client(startProcess(), everything(organizationId)));
    await write(organizationId, 'b');
    await client.until(() => client.names.join() === 'b1');
  });

  test('of another server, whose transactions were further, is told as well', async () => {
    const organizationId = newId();
    await writers.query(
      `insert into stream_event (xid, organization_id, at, type) values ('900000000000', $1, now(), 'audit')`,
      [organizationId],
    );
    const [line] = (await writers.query('select line from stream_state')).rows;
    const client = new Client(startProcess(), everything(organizationId), `${line.line}.900000000000.1`);
    await client.until(() => client.missing.length > 0);
    await write(organizationId, 'a');
    await client.until(() => client.names.length > 0);
    expect([client.missing, client.names]).toEqual([['RESTORED'], ['a1']]);
  });
});
