import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newContext } from '#runtimes/contract/fixture.ts';
import { Layout } from '#runtimes/host/layout.ts';
import { TestHost } from '#runtimes/host/testing.ts';
import type { Handle, LogLine, LogOptions, Runtime, WorkloadSpec } from '#runtimes/runtime.ts';

const LIMITS = { hours: 1, serviceBytes: 2 ** 20 };

let host: TestHost;
let image: string;
const lines: string[] = [];
beforeAll(async () => {
  host = await TestHost.open({ mode: 'plain', formerLogs: LIMITS, log: (line) => void lines.push(line) });
  host.write({ Dockerfile: 'FROM x\nCMD ["sh", "-c", "echo release $RELEASE; eval \\"$THEN\\"; exec sleep 1000"]' });
  ({ image } = await host.build());
});
afterAll(() => host.close());

const release = (spec: WorkloadSpec, generation: number, environment: Record<string, string> = {}): WorkloadSpec => ({
  ...spec,
  identity: { ...spec.identity, generation },
  environment: { RELEASE: String(generation), THEN: '', ...environment },
});

/** Deploys the first release of a service, and waits until it has written. */
async function first(environment: Record<string, string> = {}): Promise<{ spec: WorkloadSpec; handle: Handle }> {
  const spec = release(host.spec(image, { ports: [], routes: [] }), 1, environment);
  const handle = await host.apply(spec);
  await host.line(handle, /release 1/);
  return { spec, handle };
}

async function next(spec: WorkloadSpec, generation: number, environment?: Record<string, string>): Promise<Handle> {
  const handle = await host.apply(release(spec, generation, environment));
  await host.line(handle, new RegExp(`release ${generation}`));
  return handle;
}

const former = (spec: WorkloadSpec, options: Partial<LogOptions> = {}, runtime: Runtime = host.runtime) =>
  runtime.formerLogs!(spec.identity, { tail: 1000, signal: new AbortController().signal, ...options });
const texts = (found: LogLine[]) => found.map(({ text }) => text);
const folderOf = ({ identity }: WorkloadSpec) => new Layout(host.dataDir).formerLogs(identity.serviceId);
const filesOf = (spec: WorkloadSpec) => (existsSync(folderOf(spec)) ? readdirSync(folderOf(spec)).toSorted() : []);

test('the log of a replaced instance is readable by its name, and is not among those of the present ones', async () => {
  const begun = await first({ THEN: 'echo failed >&2' });
  const { spec } = begun;
  await host.line(begun.handle, /failed/);
  expect(await former(spec)).toEqual([]);
  const handle = await next(spec, 2);
  const [one, other, ...more] = await former(spec);
  expect([one, other]).toMatchObject([
    { text: 'release 1', stream: 'stdout', generation: 1, instance: `${spec.identity.serviceId}-1-1` },
    { text: 'failed', stream: 'stderr', generation: 1, instance: `${spec.identity.serviceId}-1-1` },
  ]);
  expect(more).toEqual([]);
  expect(one!.at).toMatch(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/);
  expect(await host.log(handle)).toEqual(['release 2']);
  await next(spec, 3);
  expect(texts(await former(spec))).toEqual(['release 1', 'failed', 'release 2']);
  expect(texts(await former(spec, { tail: 1 }))).toEqual(['release 2']);
  expect(texts(await former(spec, { instance: `${spec.identity.serviceId}-2-1` }))).toEqual(['release 2']);
  expect(await former(spec, { instance: 'another' })).toEqual([]);
  const { at } = (await former(spec)).at(-1)!;
  expect(texts(await former(spec, { since: at }))).toEqual(['release 2']);
  // Another process reads the same.
  const reopened = await host.reopen({ mode: 'plain', formerLogs: LIMITS });
  expect(texts(await former(spec, {}, reopened))).toHaveLength(3);
  await reopened.close();
});

test('the log of a candidate that did not get ready is kept, and that of the one that serves goes on', async () => {
  const { spec, handle } = await first();
  const once = {
    initialDelaySeconds: 0,
    periodSeconds: 1,
    timeoutSeconds: 1,
    successThreshold: 1,
    failureThreshold: 1,
  };
  const readiness = { ...once, check: { type: 'exec' as const, command: ['false'] } };
  await expect(host.apply({ ...release(spec, 2), readiness, readyTimeoutSeconds: 2 })).rejects.toThrow();
  expect(texts(await former(spec))).toEqual(['release 2']);
  expect(await host.log(handle)).toEqual(['release 1']);
});

test('previous is the last run of a former instance', async () => {
  const { spec, handle } = await first({ THEN: 'test -e seen || { touch seen; exit 1; }; echo second' });
  await host.line(handle, /second/);
  await next(spec, 2);
  expect(texts(await former(spec))).toEqual(['release 1', 'release 1', 'second']);
  const instance = `${spec.identity.serviceId}-1-1`;
  expect(texts(await former(spec, { instance, previous: true }))).toEqual(['release 1', 'second']);
});

test('a restart keeps the log of the instances that it replaces', async () => {
  const { spec, handle } = await first();
  await host.runtime.restart(handle, 2, newContext());
  expect(texts(await former(spec))).toEqual(['release 1']);
});

test('a removed service loses its logs', async () => {
  const { spec } = await first();
  await next(spec, 2);
  expect(filesOf(spec)).toHaveLength(1);
  await host.runtime.remove(spec.identity, null, newContext());
  expect([filesOf(spec), await former(spec)]).toEqual([[], []]);
});

test('logs end after their time, and the oldest when they take too much', async () => {
  const { spec } = await first();
  await next(spec, 2);
  const [file] = filesOf(spec);
  const past = new Date(Date.now() - LIMITS.hours * 3_600_000 - 1000);
  utimesSync(join(folderOf(spec), file!), past, past);
  // What a killed process has left.
  const unfinished = join(folderOf(spec), `${file!}.new`);
  writeFileSync(unfinished, 'x');
  utimesSync(unfinished, past, past);
  expect(await former(spec)).toEqual([]);
  await host.runtime.removeBroken!();
  expect(filesOf(spec)).toEqual([]);
  // Random text: it is not compressed to nothing.
  const THEN = 'head -c 900000 /dev/urandom | base64; echo release $RELEASE';
  await next(spec, 3, { THEN });
  await next(spec, 4, { THEN });
  expect(filesOf(spec)).toHaveLength(2);
  await next(spec, 5);
  expect(filesOf(spec)).toEqual([expect.stringContaining('-4-1~')]);
  const { items } = await host.runtime.diskUse!(new AbortController().signal);
  const bytes = statSync(join(folderOf(spec), filesOf(spec)[0]!)).blocks * 512;
  expect(items).toContainEqual({
    kind: 'log',
    serviceId: spec.identity.serviceId,
    name: 'former instances',
    bytes,
    isWhole: true,
  });
});

test('a damaged log is removed and told, and keeps nobody from the others', async () => {
  const { spec } = await first();
  await next(spec, 2);
  const damaged = join(folderOf(spec), `${spec.identity.serviceId}-9-1~1.log.gz`);
  writeFileSync(damaged, 'x');
  expect(texts(await former(spec))).toEqual(['release 1']);
  expect(existsSync(damaged)).toBe(false);
  expect(lines.at(-1)).toMatch(/is damaged and was removed/);
});

test('a log that cannot be kept is told, and holds up no deployment', async () => {
  const { spec } = await first();
  writeFileSync(folderOf(spec), 'in the way');
  const context = newContext();
  await host.runtime.submit(release(spec, 2), context);
  expect(context.lines).toContainEqual(expect.stringMatching(/The log of .+-1-1 is not kept: EEXIST/));
  rmSync(folderOf(spec));
});

test('without limits no log is kept', async () => {
  const runtime = await host.reopen({ mode: 'plain', formerLogs: { ...LIMITS, hours: 0 } });
  const spec = release(host.spec(image, { ports: [], routes: [] }), 1);
  await runtime.submit(spec, newContext());
  await runtime.submit(release(spec, 2), newContext());
  expect([filesOf(spec), await former(spec, {}, runtime)]).toEqual([[], []]);
  await runtime.close();
});
