import { get, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine, type TestEngine } from '#test/harness/engine.ts';
import { follow, listen, startReplica, type Sent, type StreamClient } from '#test/harness/stream.ts';
import { deploy, makeJob, order } from '#services/kinds/job/job.fixture.ts';
import { RunPosition } from '#services/capabilities/service/logs/run-position.ts';
import { RuntimeError, type LogLine, type LogOptions, type Runtime } from '#runtimes/runtime.ts';

/** Log that a test writes in place of the runtime's. */
let pretended: ((options: LogOptions) => AsyncIterable<LogLine>) | undefined;

const runtimeOf = async (): Promise<Runtime> =>
  pretended ? ({ logs: (_handle, options) => pretended!(options) } as Runtime) : engine.runtime;
const app = useApp({ QUARTERDECK_STREAMS_PER_TOKEN: '4' }, { runtimeOf });
const engine: TestEngine = useEngine(app);

let admin: Actor;
beforeAll(async () => void (admin = await app.organization()));

const open: StreamClient[] = [];
afterEach(async () => {
  pretended = undefined;
  await Promise.all(open.splice(0).map((client) => client.close()));
});

interface Asked {
  query?: Record<string, string>;
  lastId?: string;
  token?: string;
  base?: string;
}

async function followLog(url: string, { query, lastId, token, base }: Asked = {}): Promise<StreamClient> {
  const path = `${url}/log?${new URLSearchParams({ follow: 'true', ...query })}`;
  const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
  const client = await follow(`${base ?? (await listen(app.server))}${path}`, token ?? admin.token, headers);
  open.push(client);
  return client;
}

async function deployExample(instances = 1) {
  const { application } = await makeExample(admin, {
    min_running_instances: instances,
    max_running_instances: instances,
  });
  const url = `/application/${application.id}`;
  ok(await admin.post(`${url}/deploy?wait=30`), 200);
  const [route] = engine.runtime.specOf(application.id)!.routes;
  const say = (text: string) => engine.router.get(route!.host, `/say?text=${encodeURIComponent(text)}`);
  return { id: application.id, url, say };
}

const messagesOf = (events: Sent[]): string[] =>
  events.filter(({ event }) => event === 'message').map(({ data }) => data.message);
const has = (text: string) => (events: Sent[]) => messagesOf(events).includes(text);

/** Makes a line of an instance, `n` milliseconds after the first of January 2026. */
const lineAt = (n: number, text: string, instance = 'one'): LogLine => ({
  at: new Date(Date.UTC(2026, 0, 1) + n).toISOString(),
  instance,
  generation: 1,
  stream: 'stdout',
  text,
});

/** Pretends a log with these lines, which a runtime keeps, and to which nothing is added. */
const keep = (lines: LogLine[]) => {
  pretended = async function* logs({ since, tail, follow: goesOn, signal }) {
    const from = since === undefined ? 0 : Date.parse(String(since));
    yield* lines.filter(({ at }) => Date.parse(at) >= from).slice(-tail);
    if (goesOn && !signal.aborted) await once(signal, 'abort');
  };
};

describe('a followed log', () => {
  test('has the elements of the list, then new lines, and those of a later deployment', async () => {
    const { url, say } = await deployExample(2);
    await say('before');
    await expect.poll(async () => (await admin.get(`${url}/log`)).body.results.length).toBeGreaterThan(2);
    const { results } = ok(await admin.get(`${url}/log`), 200);
    const client = await followLog(url);
    await client.until(results.length);
    expect(client.events.map(({ data }) => data)).toEqual(results);
    await say('live');
    await client.until(has('live'));
    const versions = () => new Set(client.events.map(({ data }) => data.version));
    ok(await admin.post(`${url}/redeploy?wait=30`), 200);
    await client.until(() => versions().size === 2);
    expect(client.events.every(({ id, event }) => id !== '' && event === 'message')).toBe(true);
  });

  test('goes on after the last line that a client has, on any process, without a gap or a repetition', async () => {
    const { url, say } = await deployExample(2);
    const told: string[] = [];
    let lastId: string | undefined;
    const other = await startReplica(app, { runtimeOf });
    try {
      for (let round = 0; round < 6; round++) {
        for (let n = 0; n < 5; n++) await say(`missed ${round}.${n}`);
        const base = round % 2 ? other.base : undefined;
        const client = await followLog(url, { ...(lastId ? { lastId } : {}), ...(base ? { base } : {}) });
        await client.until(has(`missed ${round}.4`));
        for (let n = 0; n < 5; n++) await say(`live ${round}.${n}`);
        await client.until(has(`live ${round}.4`));
        told.push(...messagesOf(client.events));
        expect(client.events.filter(({ event }) => event === 'skipped')).toEqual([]);
        ({ lastId } = client);
        await client.close();
      }
    } finally {
      await other.close();
    }
    const { results } = ok(await admin.get(`${url}/log`), 200);
    expect(told.toSorted()).toEqual(results.map(({ message }: { message: string }) => message).toSorted());
  });

  test('that begins in the middle of many lines of one moment repeats none of them', async () => {
    const { url } = await deployExample();
    keep([lineAt(1, 'a'), lineAt(1, 'b'), lineAt(1, 'c')]);
    const first = await followLog(url, { query: { tail: '2' } });
    await first.until(2);
    keep([lineAt(1, 'a'), lineAt(1, 'b'), lineAt(1, 'c'), lineAt(1, 'd'), lineAt(2, 'e')]);
    const second = await followLog(url, { lastId: first.lastId });
    await second.until(has('e'));
    expect([...messagesOf(first.events), ...messagesOf(second.events)]).toEqual(['b', 'c', 'd', 'e']);
  });

  test('tells a client that comes back that lines are missing, where the last one that it has is no longer there', async () => {
    const { url } = await deployExample();
    keep([lineAt(1, 'seen')]);
    const first = await followLog(url);
    await first.until(1);
    keep([lineAt(900, 'much later')]);
    const second = await followLog(url, { lastId: first.lastId });
    await second.until(has('much later'));
    expect(second.events[0]).toMatchObject({ event: 'skipped', data: { count: null } });
  });

  test('has the chosen lines alone, and resumes behind those that were not wanted', async () => {
    const { url, say } = await deployExample(2);
    const wanted = await followLog(url, { query: { text: 'WANTED' } });
    for (const text of ['wanted 1', 'other', 'wanted 2']) await say(text);
    await wanted.until(has('wanted 2'));
    expect(messagesOf(wanted.events)).toEqual(['wanted 1', 'wanted 2']);
    const [{ pod_name }] = ok(await admin.get(`${url}/log?tail=1`), 200).results;
    const one = await followLog(url, { query: { pod_name } });
    await one.until(1);
    const late = await followLog(url, { query: { since: new Date(Date.now() + 3_600_000).toISOString() } });
    await say('wanted last');
    await wanted.until(has('wanted last'));
    await one.until((events) => events.length > 0);
    expect(new Set(one.events.map(({ data }) => data.pod_name))).toEqual(new Set([pod_name]));
    expect(late.events).toEqual([]);
  });

  test('with a text begins with the last lines that have it, as many as tail says', async () => {
    const { url } = await deployExample();
    const lines = Array.from({ length: 50 }, (_, n) => lineAt(n, n % 5 === 0 ? `wanted ${n}` : `other ${n}`));
    keep(lines);
    const client = await followLog(url, { query: { text: 'WANTED', tail: '3' } });
    await client.until(3);
    expect(messagesOf(client.events)).toEqual(['wanted 35', 'wanted 40', 'wanted 45']);
    const { results } = ok(await admin.get(`${url}/log?text=WANTED&tail=3`), 200);
    expect(client.events.map(({ data }) => data)).toEqual(results);
    keep([...lines, lineAt(51, 'other'), lineAt(52, 'wanted 52')]);
    const second = await followLog(url, { query: { text: 'WANTED' }, lastId: client.lastId });
    await second.until(1);
    expect(messagesOf(second.events)).toEqual(['wanted 52']);
  });

  test('of a job with a text begins with the last lines that have it, as many as tail says', async () => {
    const job = await makeJob(admin);
    order(engine, job, { lines: Array.from({ length: 50 }, (_, n) => (n % 5 === 0 ? `wanted ${n}` : `other ${n}`)) });
    await deploy(job);
    const client = await followLog(job.url, { query: { text: 'WANTED', tail: '3' } });
    await client.until(3);
    expect(messagesOf(client.events)).toEqual(['wanted 35', 'wanted 40', 'wanted 45']);
  });

  test('of a service that was never deployed begins with its first deployment', async () => {
    const { application } = await makeExample(admin);
    const other = await startReplica(app, { runtimeOf });
    try {
      const client = await followLog(`/application/${application.id}`, { base: other.base });
      ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
      await client.until(1);
      await client.close();
    } finally {
      await other.close();
    }
  });

  test('of a job has the lines of each run once, also for a client that comes back', async () => {
    const job = await makeJob(admin);
    order(engine, job, { lines: ['one', 'two'] }, { lines: ['three', 'four'] }, { lines: ['five'] });
    await deploy(job);
    const first = await followLog(job.url);
    await first.until(has('two'));
    const { results } = ok(await admin.get(`${job.url}/log`), 200);
    expect(first.events.map(({ data }) => data)).toEqual(results);
    const inMiddle = first.events[messagesOf(first.events).indexOf('one')]!.id;
    await deploy(job);
    await first.until(has('four'));
    await deploy(job);
    const second = await followLog(job.url, { lastId: inMiddle });
    await second.until(has('five'));
    const words = (events: Sent[]) => messagesOf(events).filter((text) => /^(one|two|three|four|five)$/.test(text));
    expect(words(first.events).slice(0, 4)).toEqual(['one', 'two', 'three', 'four']);
    expect(words(second.events)).toEqual(['two', 'three', 'four', 'five']);
    const unknown = new RunPosition();
    unknown.advance(new Date());
    unknown.set(job.id, { sequence: 1, lines: 0 });
    const third = await followLog(job.url, { lastId: unknown.toString() });
    await third.until(1);
    expect(third.events[0]).toMatchObject({ event: 'skipped', data: { count: null } });
  });
});

describe('a followed log ends and says why', () => {
  test('when its service is deleted', async () => {
    const { url } = await deployExample();
    const client = await followLog(url);
    await client.until(1);
    ok(await admin.delete(url), 204);
    await client.ended;
    expect(client.events.at(-1)).toMatchObject({ event: 'end', data: { status: 404 } });
  });

  test('when the token of the caller is revoked', async () => {
    const { url } = await deployExample();
    const made = ok(
      await admin.post(`/organization/${admin.organizationId}/apiToken`, { name: 'reader', scope: 'READ' }),
      201,
    );
    const client = await followLog(url, { token: made.token });
    await client.until(1);
    ok(await admin.delete(`/organization/${admin.organizationId}/apiToken/${made.id}`), 204);
    await client.ended;
    expect(client.events.at(-1)).toMatchObject({ event: 'end', data: { status: 401 } });
  });

  test('when the process ends, also for a client that reads nothing', async () => {
    const { url } = await deployExample();
    const other = await startReplica(app, { runtimeOf });
    const client = await followLog(url, { base: other.base });
    await client.until(1);
    pretended = async function* logs() {
      for (let n = 0; n < 100_000; n++) yield lineAt(n, 'x'.repeat(1_000));
    };
    const slow = await openSlow(`${other.base}${url}/log?follow=true&tail=10000`);
    await other.close();
    await client.ended;
    expect(client.events.at(-1)).toMatchObject({
      event: 'end',
      data: { status: 503, message: expect.stringContaining('Last-Event-ID') },
    });
    slow.destroy();
  });

  test('when the cluster can no longer be asked', async () => {
    const { url } = await deployExample();
    pretended = async function* logs() {
      yield lineAt(1, 'the last one');
      throw new Error('the engine went away');
    };
    const client = await followLog(url);
    await client.ended;
    expect(client.events).toMatchObject([
      { event: 'end', data: { status: 502, message: expect.stringContaining('the engine went away') } },
    ]);
  });
});

describe('what fails', () => {
  /** Errors that a runtime may throw, with their status in the list and in the stream. */
  const failures: [string, (db: typeof app.db) => Promise<unknown>, number][] = [
    ['an error of the cluster', async () => Promise.reject(new RuntimeError('unreachable', 'the engine is away')), 502],
    ['an error of the database', (db) => sql`select secret from nowhere`.execute(db), 500],
    [
      'a database that ends its connections',
      (db) => sql`select pg_terminate_backend(pg_backend_pid())`.execute(db),
      503,
    ],
  ];

  test.each(failures)(
    '%s has the same status in the list and in the stream, and tells no SQL',
    async (_what, fail, status) => {
      const { url } = await deployExample();
      pretended = async function* logs() {
        await fail(app.db);
        yield lineAt(1, 'never');
      };
      const { body } = await admin.get(`${url}/log`);
      expect(body).toMatchObject({ status });
      const client = await followLog(url);
      await client.ended;
      expect(client.events).toMatchObject([{ event: 'end', data: { status } }]);
      expect(JSON.stringify([body, client.events])).not.toMatch(/nowhere|secret|backend|administrator/);
      // A connection that was ended may still be handed out once.
      await expect.poll(() => sql`select 1`.execute(app.db).then(() => true, () => false)).toBe(true); // prettier-ignore
    },
  );

  test('a log that the cluster ends has a last event that says so', async () => {
    const { url } = await deployExample();
    pretended = async function* logs({ follow: goesOn }) {
      yield lineAt(1, 'one');
      if (goesOn) yield lineAt(2, 'two');
    };
    const client = await followLog(url);
    await client.ended;
    expect(client.events.at(-1)).toMatchObject({
      event: 'end',
      data: { status: 502, message: expect.stringContaining('Last-Event-ID') },
    });
  });
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Returns the bytes of memory that are in use, without what nothing refers to. */
function usedMemory(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Opens a stream of which nothing is read. */
async function openSlow(url: string): Promise<IncomingMessage> {
  const request = get(url, { headers: { authorization: `Token ${admin.token}` } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  return response.pause();
}

test('a client that reads slower than the log is written is told how many lines were skipped, and gets all others in order', async () => {
  const { url } = await deployExample();
  // 80 MB in all: whatever keeps them cannot stay below the limit.
  const COUNT = 4_000;
  const text = 'x'.repeat(20_000);
  let written = 0;
  let heap = 0;
  const ahead = Date.now() + 60_000;
  pretended = async function* logs({ follow: goesOn }) {
    if (!goesOn) return;
    for (; written < COUNT; written++) {
      if (written % 100 === 0) await new Promise((turn) => setImmediate(turn));
      if (written % 1_000 === 999) heap = Math.max(heap, usedMemory());
      yield { ...lineAt(0, `${written} ${text}`), at: new Date(ahead + written).toISOString() };
    }
    yield { ...lineAt(0, 'the end'), at: new Date(ahead + written).toISOString() };
  };
  const before = usedMemory();
  const slow = await openSlow(`${await listen(app.server)}${url}/log?follow=true`);
  await expect.poll(() => written).toBe(COUNT);
  expect(heap - before).toBeLessThan(40 * 2 ** 20);
  let got = '';
  slow.setEncoding('utf8').on('data', (part) => (got += String(part)));
  slow.resume();
  await once(slow, 'end');
  const skipped = [...got.matchAll(/event: skipped\ndata: \{"count":(\d+)/g)].map(([, count]) => Number(count));
  const numbers = [...got.matchAll(/"message":"(\d+) x/g)].map(([, n]) => Number(n));
  expect(skipped.length).toBeGreaterThan(0);
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(numbers.length + skipped.reduce((sum, count) => sum + count, 0)).toBe(COUNT);
  expect(got).toContain('the end');
}, 60_000);

describe('what is asked wrongly', () => {
  test('is refused before the stream begins and names the field', async () => {
    const { url } = await deployExample();
    const job = await makeJob(admin);
    const refused = async (at: string, query: string) => ok(await admin.get(`${at}/log?follow=true&${query}`), 400);
    for (const [at, query, field] of [
      [url, 'lastEventId=nonsense', 'lastEventId'],
      [url, 'lastEventId=r.1.', 'lastEventId'],
      [url, `lastEventId=i.zzzzzzzzzz.zzzzzzzzzz.0.`, 'lastEventId'],
      [job.url, 'lastEventId=i.1.1.0.', 'lastEventId'],
      // Above the highest integer of the database.
      [job.url, `lastEventId=r.1.${'A'.repeat(22)}~zik0zk~0`, 'lastEventId'],
      [url, 'previous=true', 'previous'],
      [job.url, 'pod_name=any', 'pod_name'],
      [url, 'since=yesterday', 'since'],
    ] as const)
      expect(await refused(at, query)).toMatchObject({ errors: [{ field }] });
  });

  test('is a lastEventId without follow, which would have no effect', async () => {
    const { url } = await deployExample();
    const job = await makeJob(admin);
    for (const at of [url, job.url])
      expect(ok(await admin.get(`${at}/log?lastEventId=i.1.1.0.`), 400)).toMatchObject({
        errors: [{ field: 'lastEventId', message: expect.stringContaining('follow=true') }],
      });
  });

  test('of a stranger is 404, and of nobody 401', async () => {
    const { url } = await deployExample();
    const stranger = await app.organization();
    expect((await stranger.get(`${url}/log?follow=true`)).status).toBe(404);
    expect((await app.anonymous('GET', `${url}/log?follow=true`)).status).toBe(401);
  });

  test('one followed log too many is 429 until another one is closed', async () => {
    const { url } = await deployExample();
    const clients: StreamClient[] = [];
    for (let n = 0; n < 4; n++) clients.push(await followLog(url));
    expect(await admin.get(`${url}/log?follow=true`)).toMatchObject({
      status: 429,
      headers: { 'retry-after': '10' },
      body: { message: expect.stringContaining('4 followed logs open') },
    });
    ok(await admin.get(`${url}/log`), 200);
    await clients[0]!.close();
    await expect.poll(async () => (await followLog(url)).status).toBe(200);
  });
});
