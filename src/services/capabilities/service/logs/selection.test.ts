import { beforeAll, describe, expect, test } from 'vitest';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine, type TestEngine } from '#test/harness/engine.ts';
import { connect, refusal } from '#test/harness/sockets.ts';
import { deploy, makeJob, order } from '#services/kinds/job/job.fixture.ts';

const app = useApp({}, { runtimeOf: async () => engine.runtime });
const engine: TestEngine = useEngine(app);

let admin: Actor;
beforeAll(async () => void (admin = await app.organization()));

interface Line {
  created_at: string;
  message: string;
  pod_name: string;
}

/** Deploys two instances of the example; returns the id and a function that sends a GET to one of them. */
async function deployExample(): Promise<{ id: string; url: string; ask: (path: string) => Promise<unknown> }> {
  const { application } = await makeExample(admin, { min_running_instances: 2, max_running_instances: 2 });
  const url = `/application/${application.id}`;
  ok(await admin.post(`${url}/deploy?wait=30`), 200);
  const [route] = engine.runtime.specOf(application.id)!.routes;
  return { id: application.id, url, ask: (path) => engine.router.get(route!.host, path) };
}

const linesOf = async (url: string, query: Record<string, string> = {}): Promise<Line[]> =>
  ok(await admin.get(`${url}/log?${new URLSearchParams(query)}`), 200).results;

const now = (): string => new Date().toISOString();

/** Returns a time that is later than every line so far. */
async function nextMoment(): Promise<string> {
  const before = now();
  await expect.poll(now, { interval: 2 }).not.toBe(before);
  return now();
}

describe('the log of a service', () => {
  test('since a time has no earlier line, also where the time has another offset', async () => {
    const { url, ask } = await deployExample();
    const since = await nextMoment();
    expect(await linesOf(url, { since })).toEqual([]);
    await ask('/say?text=later');
    const eastern = new Date(Date.parse(since) + 2 * 3_600_000).toISOString().replace('Z', '+02:00');
    for (const time of [since, eastern])
      expect(await linesOf(url, { since: time })).toMatchObject([{ message: 'later' }]);
    expect(await linesOf(url, { since: '2000-01-01T00:00:00Z' })).toEqual(await linesOf(url));
  });

  test('with a text has the newest lines that contain it, in upper or lower case', async () => {
    const { url, ask } = await deployExample();
    for (const word of ['first', 'Second', 'other', 'second again']) await ask(`/say?text=${encodeURIComponent(word)}`);
    await expect.poll(() => linesOf(url)).toContainEqual(expect.objectContaining({ message: 'second again' }));
    const messages = async (query: Record<string, string>) => (await linesOf(url, query)).map(({ message }) => message);
    expect((await messages({ text: 'SECOND' })).toSorted()).toEqual(['Second', 'second again']);
    const [{ message: newest }] = (await linesOf(url, { text: 'second' })).slice(-1) as [Line];
    expect(await messages({ text: 'second', tail: '1' })).toEqual([newest]);
    expect(await messages({ text: 'never written' })).toEqual([]);
    expect(ok(await admin.get(`${url}/log?text=`), 400).message).toMatch(/^text: must /);
  });

  test('of an instance has its lines alone, and that of an unknown one has none', async () => {
    const { url } = await deployExample();
    const all = await linesOf(url);
    const names = [...new Set(all.map((line) => line.pod_name))];
    expect(names).toHaveLength(2);
    const [name] = names;
    expect(await linesOf(url, { pod_name: name! })).toEqual(all.filter((line) => line.pod_name === name));
    expect(await linesOf(url, { pod_name: 'unknown' })).toEqual([]);
  });

  test('before the last restart is that of the instance that crashed', async () => {
    const { url, ask } = await deployExample();
    expect(await linesOf(url, { previous: 'true' })).toEqual([]);
    const running = await linesOf(url);
    await ask('/exit?code=7');
    await expect.poll(() => linesOf(url, { previous: 'true' })).not.toEqual([]);
    const previous = await linesOf(url, { previous: 'true' });
    const [{ pod_name: crashed }] = previous as [Line];
    expect(previous.map(({ message }) => message)).toEqual(
      running.filter((line) => line.pod_name === crashed).map(({ message }) => message),
    );
    expect(await linesOf(url, { previous: 'false' })).toEqual(await linesOf(url));
  });

  test('of an instance that did not get ready is selected like any other, and is no previous run', async () => {
    const { application } = await makeExample(admin);
    const url = `/application/${application.id}`;
    ok(await admin.post(`${url}/environmentVariable`, { key: 'FAIL_START', value: 'yes' }), 201);
    ok(await admin.post(`${url}/deploy?wait=40`), 200);
    const [line] = (await linesOf(url)) as [Line];
    expect(await linesOf(url, { pod_name: line.pod_name, since: line.created_at })).toHaveLength(1);
    expect(await linesOf(url, { pod_name: 'unknown' })).toEqual([]);
    expect(await linesOf(url, { since: await nextMoment() })).toEqual([]);
    expect(await linesOf(url, { previous: 'true' })).toEqual([]);
  });

  test('refuses what it cannot select by and says what would be right', async () => {
    const { application } = await makeExample(admin);
    const refused = async (query: string): Promise<string> =>
      ok(await admin.get(`/application/${application.id}/log?${query}`), 400).message;
    for (const since of ['yesterday', '2026-01-31', '2026-02-30T00:00:00Z', '1769850000', ''])
      expect(await refused(`since=${since}`)).toBe('since: must be a time in RFC 3339, such as 2026-01-31T09:00:00Z');
    expect(await refused('previous=maybe')).toBe('previous: must be true or false');
    expect(await refused('pod_name=')).toMatch(/^pod_name: must /);
  });
});

describe('the log of a job', () => {
  test('has the lines since a time, and names its executions where it is asked for instances', async () => {
    const job = await makeJob(admin);
    order(engine, job, { lines: ['one'] });
    await deploy(job);
    const all = await linesOf(job.url);
    const { created_at: since } = all.find(({ message }) => message === 'one')!;
    expect(await linesOf(job.url, { since })).toEqual(all.filter((line) => line.created_at >= since));
    expect(await linesOf(job.url, { since: await nextMoment() })).toEqual([]);
    expect((await linesOf(job.url, { text: 'ONE' })).map(({ message }) => message)).toEqual(['one']);
    for (const field of ['pod_name=any', 'previous=true'])
      expect(ok(await admin.get(`${job.url}/log?${field}`), 400).message).toMatch(
        new RegExp(`^${field.split('=')[0]}: must be left out: .*/execution lists them`),
      );
    expect(await linesOf(job.url, { previous: 'false' })).toEqual(all);
  });
});

describe('the socket /service/logs', () => {
  test('begins at a time and sends the lines of one instance', async () => {
    const { id, url, ask } = await deployExample();
    const [{ pod_name: chosen }] = (await linesOf(url)) as [Line];
    const since = await nextMoment();
    const client = await connect(
      app,
      '/service/logs',
      { service: id, since, pod_name: chosen },
      { token: admin.token },
    );
    await expect
      .poll(async () => {
        await ask('/say?text=spoken');
        return client.texts().length;
      })
      .toBeGreaterThan(0);
    const frames = client.texts().map((text) => JSON.parse(text) as { message: string; pod_name: string });
    expect(new Set(frames.map(({ message, pod_name }) => `${pod_name} ${message}`))).toEqual(
      new Set([`${chosen} spoken`]),
    );
    client.socket.close();
  });

  test('of a job begins at a time', async () => {
    const job = await makeJob(admin);
    order(engine, job, { lines: ['one'] }, { lines: ['two'] });
    await deploy(job);
    const since = await nextMoment();
    const client = await connect(app, '/service/logs', { service: job.id, since }, { token: admin.token });
    await deploy(job);
    await client.frame(({ message }) => message === 'two');
    expect(client.texts().map((text) => JSON.parse(text).message)).not.toContain('one');
    client.socket.close();
  });

  test('is refused before it opens where the selection is wrong', async () => {
    const { id } = await deployExample();
    const job = await makeJob(admin);
    const refused = (query: object) => refusal(app, '/service/logs', { ...query }, { token: admin.token });
    expect(await refused({ service: id, since: 'yesterday' })).toMatchObject({
      status: 400,
      body: { message: 'since: must be a time in RFC 3339, such as 2026-01-31T09:00:00Z' },
    });
    expect(await refused({ service: job.id, pod_name: 'any' })).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/^pod_name: must be left out/) },
    });
  });
});
