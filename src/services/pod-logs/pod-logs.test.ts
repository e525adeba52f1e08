import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { createPodLogs, POD_LOG_TASKS } from '#services/pod-logs/index.ts';
import type { EndedElsewhere } from '#runtimes/former-log-store.ts';
import type { LogLine, LogOptions } from '#runtimes/runtime.ts';
import { newestLines, packLog } from '#runtimes/tools/packed-log.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_POD_LOG_LIMIT_MB: '1' });
const HOUR_MS = 3_600_000;

let admin: Actor;
beforeAll(async () => {
  admin = await app.organization();
});

interface Place {
  serviceId: string;
  environmentId: string;
  clusterId: string;
}

async function place(): Promise<Place> {
  const { environment, application } = await makeExample(admin);
  return { serviceId: application.id, environmentId: environment.id, clusterId: environment.cluster_id };
}

/** Keeps lines of a pod of the second generation. */
async function keep(
  here: Place,
  changes: Partial<EndedElsewhere>,
  lines: LogLine[],
  lastRunFrom: string | null = null,
) {
  const { clusterId, ...of } = here;
  const pod = { ...of, name: 'p', key: newId(), endedAt: app.platform.clock.now(), ...changes };
  await createPodLogs(app.platform, clusterId)!.keep(pod, await packLog({ generation: 2, lastRunFrom }, lines));
}

const line = (text: string, secondsAgo = 0): LogLine => ({
  at: new Date(app.platform.clock.now().getTime() - secondsAgo * 1000).toISOString(),
  instance: 'p',
  generation: 2,
  stream: 'stdout',
  text,
});

const read = async ({ clusterId, serviceId }: Place, options: Partial<LogOptions> = {}) => {
  const logs = await createPodLogs(app.platform, clusterId)!.list(serviceId);
  return newestLines(logs, { tail: 1000, signal: new AbortController().signal, ...options });
};
const texts = async (of: Place, options: Partial<LogOptions> = {}) => (await read(of, options)).map(({ text }) => text);

test('lines of ended pods are read by pod, time and last run, oldest first', async () => {
  const here = await place();
  const lines = [line('one', 30), line('two', 20)];
  await keep(here, { name: 'a' }, lines, lines[1]!.at);
  await keep(here, { name: 'b' }, [line('between', 25), line('last', 10)]);
  expect(await texts(here)).toEqual(['one', 'between', 'two', 'last']);
  expect(await read(here, { instance: 'b', tail: 1 })).toEqual([{ ...line('last'), at: expect.any(String), instance: 'b' }]); // prettier-ignore
  expect(await texts(here, { instance: 'a', previous: true })).toEqual(['two']);
  expect(await texts(here, { since: lines[1]!.at })).toEqual(['two', 'last']);
  expect(await texts(here, { instance: 'other' })).toEqual([]);
  expect(await texts(await place())).toEqual([]);
});

test('a pod that is read twice has the longer of both logs', async () => {
  const here = await place();
  const pod = { key: newId() };
  await keep(here, pod, [line('one')]);
  await keep(here, pod, [line('one'), line('two'), line('three')]);
  await keep(here, pod, [line('one')]);
  expect(await texts(here)).toEqual(['one', 'two', 'three']);
});

test('a pod that names the service of another environment or cluster leaves nothing', async () => {
  const [here, there] = [await place(), await place()];
  await keep(here, { environmentId: there.environmentId }, [line('of another environment')]);
  await keep({ ...here, clusterId: newId() }, {}, [line('of another cluster')]);
  await keep(here, { serviceId: newId() }, [line('of nothing')]);
  expect(await app.db.selectFrom('pod_log').select('pod_name').where('service_id', '=', here.serviceId).execute()).toEqual([]); // prettier-ignore
});

test('of more than the limit of a service the oldest logs go, and those of other services stay', async () => {
  const [here, other] = [await place(), await place()];
  await keep(other, {}, [line('other')]);
  const large = () => line(randomBytes(300_000).toString('hex'));
  const endedAt = (hours: number) => new Date(app.platform.clock.now().getTime() - hours * HOUR_MS);
  for (const hours of [3, 1, 2, 0]) await keep(here, { name: `p${hours}`, endedAt: endedAt(hours) }, [large()]);
  expect((await read(here)).map(({ instance }) => instance).toSorted()).toEqual(['p0', 'p1', 'p2']);
  expect(await texts(other)).toEqual(['other']);
});

test('a log is not read if others have as many newer lines as are wanted', async () => {
  const here = await place();
  const endedAt = (seconds: number) => new Date(app.platform.clock.now().getTime() - seconds * 1000);
  await keep(here, { name: 'old', endedAt: endedAt(100) }, [line('old', 110)]);
  await keep(here, { name: 'long', endedAt: endedAt(50) }, [line('first of long', 120), line('last of long', 60)]);
  await keep(here, { name: 'new', endedAt: endedAt(1) }, [line('new', 10), line('newest', 5)]);
  const content = Buffer.from('no gzip: whoever reads it has no lines');
  await app.db.updateTable('pod_log').set({ content }).where('pod_name', '=', 'old').execute();
  expect(await texts(here, { tail: 3 })).toEqual(['last of long', 'new', 'newest']);
  expect(await texts(here, { tail: 4 })).toEqual(['first of long', 'last of long', 'new', 'newest']);
  const read: string[] = [];
  const logs = (await createPodLogs(app.platform, here.clusterId)!.list(here.serviceId)).map((log) => ({
    ...log,
    read: () => (read.push(log.instance), log.read()),
  }));
  await newestLines(logs, { tail: 2, signal: new AbortController().signal });
  expect(read).toEqual(['new']);
});

test('a log is kept as long as the setting says, and then removed', async () => {
  const here = await place();
  const hours = app.platform.settings.formerLogHours;
  const now = app.platform.clock.now().getTime();
  await keep(here, { name: 'late', endedAt: new Date(now - (hours + 1) * HOUR_MS) }, [line('late')]);
  await keep(here, { name: 'old' }, [line('old')]);
  await keep(here, { name: 'young' }, [line('young')]);
  const ended_at = new Date(now - (hours + 1) * HOUR_MS);
  await app.db.updateTable('pod_log').set({ ended_at }).where('pod_name', '=', 'old').execute();
  expect(await texts(here)).toEqual(['young']);
  for (const task of POD_LOG_TASKS) await task.run(app.platform, new AbortController().signal);
  const left = await app.db.selectFrom('pod_log').select('pod_name').where('service_id', '=', here.serviceId).execute();
  expect(left).toEqual([{ pod_name: 'young' }]);
  expect(createPodLogs({ ...app.platform, settings: { ...app.platform.settings, formerLogHours: 0 } }, here.clusterId)).toBeUndefined(); // prettier-ignore
});

test('content that is damaged has no lines, and the other logs are read', async () => {
  const here = await place();
  await keep(here, { name: 'a' }, [line('a')]);
  await keep(here, { name: 'b' }, [line('b')]);
  const content = Buffer.from('no gzip');
  await app.db.updateTable('pod_log').set({ content }).where('pod_name', '=', 'a').execute();
  expect(await texts(here)).toEqual(['b']);
});

test('the logs of a service go with it', async () => {
  const here = await place();
  await keep(here, {}, [line('one')]);
  ok(await admin.delete(`/environment/${here.environmentId}`), 204);
  await app.db.deleteFrom('service').where('id', '=', here.serviceId).execute();
  await keep(here, {}, [line('after')]);
  expect(await app.db.selectFrom('pod_log').selectAll().where('service_id', '=', here.serviceId).execute()).toEqual([]);
});
