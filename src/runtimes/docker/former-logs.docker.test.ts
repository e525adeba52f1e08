import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { newContext } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { Handle, LogLine, LogOptions, WorkloadSpec } from '#runtimes/runtime.ts';
import { openBench, type DockerBench } from './testing.ts';

let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(inject('docker').socketPath, { formerLogs: { hours: 1, serviceBytes: 2 ** 20 } });
});
afterAll(() => bench[Symbol.asyncDispose]());

const PROGRAM = 'console.log("release", process.env.RELEASE); eval(process.env.THEN ?? ""); setInterval(() => 0, 1000)';
const release = (spec: WorkloadSpec, generation: number, THEN = ''): WorkloadSpec => ({
  ...spec,
  identity: { ...spec.identity, generation },
  environment: { RELEASE: String(generation), THEN },
});
const make = (THEN?: string) =>
  release(bench.spec({ arguments: ['node', '-e', PROGRAM], ports: [], routes: [] }), 1, THEN);

const options = { tail: 1000, signal: new AbortController().signal };
const textsOf = (lines: LogLine[]) => lines.map(({ text }) => text);
const former = (spec: WorkloadSpec, more: Partial<LogOptions> = {}) =>
  bench.runtime.formerLogs!(spec.identity, { ...options, ...more });
async function present(handle: Handle): Promise<string[]> {
  const texts: string[] = [];
  for await (const { text } of bench.runtime.logs(handle, { ...options, follow: false })) texts.push(text);
  return texts;
}
/** Deploys a release, and waits for a line of it. */
async function apply(spec: WorkloadSpec, wanted = `release ${spec.identity.generation}`): Promise<Handle> {
  const handle = await bench.apply(spec);
  await until(
    () => present(handle),
    (texts) => texts.includes(wanted),
  );
  return handle;
}
const filesOf = ({ identity }: WorkloadSpec) => {
  const folder = join(bench.options.dataDir, 'docker-logs', identity.serviceId);
  return existsSync(folder) ? readdirSync(folder) : [];
};

test('the log of a replaced container is readable by its name after the engine has deleted it', async () => {
  const spec = make('console.error("failed")');
  await apply(spec, 'failed');
  const [name] = await bench.containers(spec);
  const handle = await apply(release(spec, 2));
  expect(await bench.containers(spec)).not.toContain(name);
  expect(await former(spec)).toMatchObject([
    { text: 'release 1', stream: 'stdout', generation: 1, instance: name },
    { text: 'failed', stream: 'stderr', generation: 1, instance: name },
  ]);
  expect(await former(spec, { instance: 'another' })).toEqual([]);
  expect(await present(handle)).toEqual(['release 2']);
  await apply(release(spec, 3));
  expect(textsOf(await former(spec))).toEqual(['release 1', 'failed', 'release 2']);
  const { at } = (await former(spec)).at(-1)!;
  expect(textsOf(await former(spec, { since: at }))).toEqual(['release 2']);
  const { items } = await bench.runtime.diskUse!(options.signal);
  expect(items).toContainEqual(
    expect.objectContaining({ kind: 'log', serviceId: spec.identity.serviceId, name: 'former instances' }),
  );
});

test('the log of a candidate that did not get ready is kept, and that of the one that serves goes on', async () => {
  const spec = make();
  const handle = await apply(spec);
  const once = {
    initialDelaySeconds: 0,
    periodSeconds: 1,
    timeoutSeconds: 5,
    successThreshold: 1,
    failureThreshold: 1,
  };
  const readiness = { ...once, check: { type: 'exec' as const, command: ['node', '-e', 'process.exit(1)'] } };
  await expect(bench.apply({ ...release(spec, 2), readiness, readyTimeoutSeconds: 5 })).rejects.toThrow();
  expect(textsOf(await former(spec))).toEqual(['release 2']);
  expect(await present(handle)).toEqual(['release 1']);
});

test('an instance that is started anew because of its disk, and one that is restarted, keep their logs', async () => {
  const spec = make();
  const handle = await apply(spec);
  const [name] = await bench.containers(spec);
  await bench.runtime.replaceInstance!(spec.identity, name!, 'it wrote too much', newContext());
  expect(textsOf(await former(spec, { instance: name! }))).toEqual(['release 1']);
  await bench.runtime.restart(handle, 2, newContext());
  expect(textsOf(await former(spec))).toEqual(['release 1', 'release 1']);
});

test('previous is the last run of a former container', async () => {
  const THEN = 'const fs = require("fs"); if (!fs.existsSync("/tmp/seen")) { fs.writeFileSync("/tmp/seen", ""); process.exit(1) } console.log("second")'; // prettier-ignore
  const spec = make(THEN);
  await apply(spec, 'second');
  const [instance] = await bench.containers(spec);
  await apply(release(spec, 2));
  expect(textsOf(await former(spec))).toEqual(['release 1', 'release 1', 'second']);
  expect(textsOf(await former(spec, { instance: instance!, previous: true }))).toEqual(['release 1', 'second']);
});

test('a removed service loses its logs', async () => {
  const spec = make();
  await apply(spec);
  await apply(release(spec, 2));
  expect(filesOf(spec)).toHaveLength(1);
  await bench.runtime.remove(spec.identity, null, newContext());
  expect([filesOf(spec), await former(spec)]).toEqual([[], []]);
});
