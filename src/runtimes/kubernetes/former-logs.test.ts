import type { ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { EndedElsewhere } from '#runtimes/former-log-store.ts';
import type { LogLine } from '#runtimes/runtime.ts';
import { newestLines } from '#runtimes/tools/packed-log.ts';
import { FormerPods } from './former-logs.ts';
import { CONTAINER } from './objects.ts';
import { LABEL } from './labels.ts';
import { ClusterCache } from './watch/cache.ts';
import { FakeApi } from './watch/fake-api.fixture.ts';

const SERVICE = randomUUID();
const ENVIRONMENT = randomUUID();
const STARTED = '2026-01-02T03:04:05Z';

let api: FakeApi;
let former: FormerPods;
let kept: { instance: EndedElsewhere; lines: LogLine[]; texts: string[]; lastRun: string[] }[];
let told: string[];
let failure: Error | null;
const textsOf = (lines: LogLine[]) => lines.map(({ text }) => text);
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  [kept, told, failure] = [[], [], null];
  api = await FakeApi.start();
  const cluster = api.connect();
  const keep = async (instance: EndedElsewhere, content: Buffer) => {
    if (failure) throw failure;
    const isDamaged = (error: Error) => Promise.reject(error);
    const log = { instance: instance.name, endedAt: 0, read: async () => content, isDamaged };
    const read = (previous: boolean) =>
      newestLines([log], { tail: 100, previous, signal: new AbortController().signal });
    const [lines, lastRun] = [await read(false), await read(true)];
    kept.push({ instance, lines, texts: textsOf(lines), lastRun: textsOf(lastRun) });
  };
  former = new FormerPods(cluster, { keep, list: () => Promise.resolve([]) }, (line) => void told.push(line));
  const cache = new ClusterCache(cluster, { firstPauseMs: 10 }, former);
  closing.push(
    () => cluster.connection.close(),
    () => former.close(),
    () => cache.close(),
  );
  cache.use({ changed: () => undefined });
  await expect.poll(() => cache.isCurrent).toBe(true);
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  await api.stop();
});

interface PodChanges {
  labels?: Record<string, string>;
  namespace?: string;
  ends?: boolean;
  status?: object;
}

/** Creates or changes a pod; `ends` tells it to end. */
function put(
  name: string,
  { labels = {}, namespace = `qd-${ENVIRONMENT}`, ends = true, status = {} }: PodChanges = {},
) {
  const all = {
    [LABEL.installation]: 'test',
    [LABEL.service]: SERVICE,
    [LABEL.environment]: ENVIRONMENT,
    [LABEL.generation]: '4',
    ...labels,
  };
  const end = ends ? { deletionTimestamp: '2026-01-02T04:00:00Z', deletionGracePeriodSeconds: 10 } : {};
  const metadata = { labels: all, namespace, uid: `uid-${name}`, ...end };
  const container = { name: CONTAINER, ready: false, restartCount: 0, state: { running: { startedAt: STARTED } } };
  const spec = { containers: [{ name: CONTAINER }] };
  api.put('pods', name, SERVICE, { metadata: { name, resourceVersion: '1000', ...metadata }, spec, status: { phase: 'Running', containerStatuses: [container], ...status } }); // prettier-ignore
}

const line = (text: string, minute = 59) => `2026-01-02T03:${String(minute).padStart(2, '0')}:00.000000000Z ${text}\n`;
const ofContainer = (changes: object) => ({
  containerStatuses: [{ name: CONTAINER, ready: false, restartCount: 0, state: {}, ...changes }],
});

/** Lets the log of a pod be followed; returns its answers so far. */
function openLog(name: string): ServerResponse[] {
  const answers: ServerResponse[] = [];
  api.logs.set(name, (response) => {
    response.writeHead(200).flushHeaders();
    answers.push(response);
  });
  return answers;
}

const giveLog = (name: string, text: string) => api.logs.set(name, (response) => void response.end(text));

test('the log of a pod that is told to end is kept up to its last line, once', async () => {
  const answers = openLog('p');
  put('p', { ends: false });
  put('p');
  await expect.poll(() => answers.length).toBe(1);
  answers[0]!.write(line('serving'));
  put('p', { status: { phase: 'Succeeded' } });
  answers[0]!.end(line('ended in order'));
  await expect.poll(() => kept).toHaveLength(1);
  expect(kept[0]!.texts).toEqual(['serving', 'ended in order']);
  expect(kept[0]!.instance).toMatchObject({
    serviceId: SERVICE,
    environmentId: ENVIRONMENT,
    name: 'p',
    key: 'uid-p',
  });
  expect(kept[0]!.lines[0]).toMatchObject({ instance: 'p', generation: 4, at: '2026-01-02T03:59:00.000Z' });
  put('p', { status: { phase: 'Succeeded', message: 'changed again' } });
  giveLog('q', line('q'));
  put('q');
  await expect.poll(() => kept).toHaveLength(2);
  expect([answers.length, kept[1]!.texts, told]).toEqual([1, ['q'], []]);
});

test('a pod that failed is read although it stays, with the run before its last one and the time of its end', async () => {
  api.logs.set('p', (response, query) => {
    response.end(query.get('previous') === 'true' ? line('first', 0) : line('second'));
  });
  const finishedAt = '2026-01-02T03:30:00Z';
  const container = ofContainer({
    restartCount: 1,
    state: { terminated: { exitCode: 1, startedAt: STARTED, finishedAt } },
  });
  put('p', { ends: false, status: { phase: 'Failed', reason: 'Evicted', ...container } });
  await expect.poll(() => kept).toHaveLength(1);
  expect(kept[0]).toMatchObject({
    texts: ['first', 'second'],
    lastRun: ['second'],
    instance: { endedAt: new Date(finishedAt) },
  });
});

test('a container that waits to be started again has one run to read', async () => {
  giveLog('p', line('crashed'));
  const container = ofContainer({ restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } } });
  put('p', { status: container });
  await expect.poll(() => kept.map(({ texts }) => texts)).toEqual([['crashed']]);
});

test('runs of jobs, and pods that only claim to be of a service, are not read', async () => {
  for (const name of ['job', 'elsewhere', 'unknown', 'good']) giveLog(name, line(name));
  put('job', { labels: { [LABEL.task]: 't' } });
  put('elsewhere', { namespace: 'default' });
  put('unknown', { labels: { [LABEL.service]: 'no id' } });
  put('good');
  await expect.poll(() => kept.map(({ texts }) => texts)).toEqual([['good']]);
});

test('of many pods that end at once some are followed to their end, and the others are read meanwhile', async () => {
  const names = Array.from({ length: 80 }, (_, n) => `p${n}`);
  const followed: (() => void)[] = [];
  for (const name of names)
    api.logs.set(name, (response, query) => {
      if (query.get('follow') !== 'true') return void response.end(line(`${name} so far`));
      response.writeHead(200).flushHeaders();
      response.write(line(`${name} so far`));
      followed.push(() => response.end(line(`${name} at last`)));
    });
  for (const name of names) put(name);
  await expect.poll(() => kept.length).toBe(56);
  expect(followed).toHaveLength(24);
  for (const end of followed) end();
  await expect.poll(() => kept.length).toBe(80);
  expect(kept.map(({ texts }) => texts[0]).toSorted()).toEqual(names.map((name) => `${name} so far`).toSorted());
  expect(kept.filter(({ texts }) => texts.length === 2)).toHaveLength(24);
});

test('a log that breaks off is read anew', async () => {
  let asked = 0;
  api.logs.set('p', (response) => {
    response.write(line('one'));
    if (++asked === 1) setImmediate(() => response.destroy());
    else response.end(line('two'));
  });
  put('p');
  await expect.poll(() => kept.map(({ texts }) => texts)).toEqual([['one', 'two']]);
  expect(told).toEqual([]);
});

test('a log that cannot be read, or not be kept, is told, and others are kept', async () => {
  api.logs.set(
    'p',
    (response) => void response.writeHead(403).end(JSON.stringify({ message: 'pods/log is forbidden' })),
  );
  put('p');
  await expect
    .poll(() => told, { timeout: 10_000 })
    .toEqual([expect.stringMatching(/^The log of the pod p is not kept: .*forbidden/)]);
  failure = new Error('the database is away');
  giveLog('q', line('q'));
  put('q');
  await expect.poll(() => told[1]).toBe('The log of the pod q is not kept: the database is away');
  failure = null;
  put('q', { status: { phase: 'Succeeded' } });
  await expect.poll(() => kept.map(({ texts }) => texts)).toEqual([['q']]);
});

test('what was read so far is kept when the process ends', async () => {
  const answers = openLog('p');
  put('p');
  await expect.poll(() => answers.length).toBe(1);
  await new Promise((resolve) => answers[0]!.write(line('so far'), resolve));
  // What was sent before another log was read has come.
  giveLog('q', line('q'));
  put('q');
  await expect.poll(() => kept.map(({ texts }) => texts)).toEqual([['q']]);
  await former.close();
  expect(kept.map(({ texts }) => texts)).toEqual([['q'], ['so far']]);
});
