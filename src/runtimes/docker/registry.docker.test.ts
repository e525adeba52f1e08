import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newContext, newIdentity, newTask, nextSpec } from '#runtimes/contract/fixture.ts';
import type { ProgramSpec, RegistryAccess, TaskSpec } from '#runtimes/runtime.ts';
import { startRegistry } from '#test/harness/registry.ts';
import type { TestRegistry } from '#test/harness/registry.ts';
import { openBench } from './testing.ts';
import type { DockerBench } from './testing.ts';

const { socketPath } = inject('docker');
let bench: DockerBench;
let open: TestRegistry;
let closed: TestRegistry;

beforeAll(async () => {
  bench = await openBench(socketPath);
  open = await startRegistry();
  closed = await startRegistry({ auth: 'htpasswd' });
});
afterAll(async () => {
  for (const { identity } of specs) await bench.runtime.remove(identity, null, newContext());
  await bench[Symbol.asyncDispose]();
  await Promise.all([open.stop(), closed.stop()]);
});

const specs: TaskSpec[] = [];
const busybox = readFileSync(execFileSync('which', ['busybox'], { encoding: 'utf8' }).trim());

/** Pushes an image with busybox and a greeting; returns its reference. */
async function push(registry: TestRegistry, name: string, greeting: string): Promise<string> {
  const files = { 'bin/busybox': { content: busybox, mode: 0o755 }, greeting };
  const config = { Cmd: ['/bin/busybox', 'cat', '/greeting'] };
  return `${registry.host}/${name}@${await registry.pushImage(name, 'latest', { files, config })}`;
}

function task(image: string, registry: RegistryAccess | null = null): TaskSpec {
  const spec = newTask(newIdentity(bench.installation), image, [], { arguments: [], registry });
  specs.push(spec);
  return spec;
}

const access = (password = 'secret'): RegistryAccess => ({ host: closed.host, username: 'ada', password });
const isThere = (spec: Pick<ProgramSpec, 'image'> & TaskSpec) => bench.runtime.hasImage!(spec.identity, spec.image);

async function problem(spec: TaskSpec): Promise<{ code: string; message: string }> {
  return bench.runtime.run!(spec, newContext()).then(
    () => ({ code: 'none', message: 'it ran' }),
    (error: { code: string; message: string }) => ({ code: error.code, message: error.message }),
  );
}

describe('an image of a registry', () => {
  test('is pulled once, and its layers are told', async () => {
    const spec = task(await push(open, 'team/app', 'good morning'));
    const context = newContext();
    expect(await bench.runtime.run!(spec, context)).toMatchObject({ exitCode: 0 });
    expect(context.lines).toContain('good morning');
    expect(context.lines).toContain(`Pulling ${spec.image}.`);
    expect(context.lines).toContain('1 of 1 layers are there.');
    const again = newContext();
    await bench.runtime.run!({ ...task(spec.image), name: 'again' }, again);
    expect(again.lines.filter((line) => line.startsWith('Pulling'))).toEqual([]);
  });

  test('is applied as a workload, and a new digest replaces it', async () => {
    const start = (text: string) => ({
      arguments: ['/bin/busybox', 'sh', '-c', `echo ${text}; while :; do /bin/busybox sleep 1; done`],
    });
    const first = bench.spec({
      image: await push(open, 'team/server', 'one'),
      ports: [],
      routes: [],
      gracePeriodSeconds: 1,
      ...start('one'),
    });
    await bench.apply(first);
    const next = nextSpec(first, { image: await push(open, 'team/server', 'two'), ...start('two') });
    const handle = await bench.apply(next);
    await expect.poll(() => bench.runtime.observe(handle)).toMatchObject({ state: 'running', generation: 2 });
  });

  test('that wants to know who asks is pulled with the credentials of that request, which the engine does not keep', async () => {
    const spec = task(await push(closed, 'private/app', 'for members'), access());
    const context = newContext();
    expect(await bench.runtime.run!(spec, context)).toMatchObject({ exitCode: 0 });
    expect(context.lines.join('\n')).not.toContain('secret');
    const other = task(await push(closed, 'private/other', 'also for members'));
    expect(await problem(other)).toEqual({
      code: 'failed',
      message: expect.stringMatching(/^The registry 127\.0\.0\.1:\d+ wants credentials for .*private\/other/),
    });
  });

  test('is not pulled with wrong credentials, and the error does not repeat them', async () => {
    const { code, message } = await problem(task(await push(closed, 'private/third', 'x'), access('wrong-password')));
    expect(code).toBe('failed');
    expect(message).toMatch(/does not let these credentials pull .*check user name, password/);
    expect(message).not.toContain('wrong-password');
  });

  test('that is not there, or whose registry is not, is told as such', async () => {
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
    expect(await problem(task(`${open.host}/team/nothing@${digest}`))).toEqual({
      code: 'failed',
      message: expect.stringMatching(/^The registry 127\.0\.0\.1:\d+ does not have the image .*team\/nothing/),
    });
    expect(await problem(task(`127.0.0.1:9/team/app@${digest}`))).toEqual({
      code: 'failed',
      message: expect.stringMatching(/^The registry 127\.0\.0\.1:9 cannot be reached/),
    });
  });

  test('an aborted pull throws and begins nothing', async () => {
    const abort = new AbortController();
    const silent = createServer((socket) => {
      abort.abort();
      socket.on('error', () => socket.destroy());
    });
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const { port } = silent.address() as AddressInfo;
    const spec = task(`127.0.0.1:${port}/team/app@sha256:${'0'.repeat(64)}`);
    try {
      await expect(bench.runtime.run!(spec, newContext(abort.signal))).rejects.toMatchObject({ code: 'aborted' });
    } finally {
      silent.close();
    }
    expect(await bench.containers({ ...bench.spec(), identity: spec.identity })).toEqual([]);
  });

  test('that is there already is neither pulled nor counted again for its organization, and counts for another one', async () => {
    const image = await push(open, 'team/counted', 'counted');
    const [one, sibling, other] = [task(image), task(image), task(image)];
    const { organizationId } = one.identity;
    sibling.identity = { ...sibling.identity, organizationId };
    const run = async (spec: TaskSpec) => {
      const context = newContext();
      await bench.runtime.run!(spec, context);
      return context.lines.filter((line) => line.startsWith('Pulling'));
    };
    const measure = async () => {
      const { images, items } = await bench.runtime.diskUse!(AbortSignal.timeout(60_000));
      const ids = [one, sibling, other].map(({ identity }) => identity.serviceId);
      return { images, own: items.filter(({ kind, serviceId }) => kind === 'image' && ids.includes(serviceId)) };
    };
    expect(await run(one)).toEqual([`Pulling ${image}.`]);
    const first = await measure();
    expect(first.own).toMatchObject([{ serviceId: one.identity.serviceId, isWhole: true }]);
    expect(first.own[0]!.bytes).toBeGreaterThanOrEqual(busybox.length);

    expect(await run(sibling)).toEqual([]);
    const second = await measure();
    expect([second.images, second.own.length, second.own[0]!.bytes]).toEqual([first.images, 1, first.own[0]!.bytes]);

    expect(await run(other)).toEqual([]);
    const third = await measure();
    expect(third.images).toBe(first.images);
    expect(third.own.map(({ bytes }) => bytes)).toEqual([first.own[0]!.bytes, first.own[0]!.bytes]);
  });

  test('goes with the last that uses it, and not before', async () => {
    const image = await push(open, 'team/shared', 'shared');
    const [one, other] = [task(image), task(image)];
    for (const spec of [one, other]) await bench.runtime.run!(spec, newContext());
    await bench.runtime.remove(one.identity, null, newContext());
    expect(await isThere(other)).toBe(true);
    await bench.runtime.removeImages!(one.identity, [image]);
    await bench.runtime.removeImages!(one.identity, 'all');
    expect(await isThere(other)).toBe(true);
    await bench.runtime.remove(other.identity, null, newContext());
    expect(await isThere(other)).toBe(false);
  });

  test('that somebody else pulled stays when we are done with it', async () => {
    const image = await push(open, 'team/foreign', 'of somebody else');
    const stream = (await bench.engine.pull(image)) as unknown as AsyncIterable<unknown>;
    for await (const _part of stream) continue;
    const spec = task(image);
    await bench.runtime.run!(spec, newContext());
    await bench.runtime.remove(spec.identity, null, newContext());
    expect(await isThere(spec)).toBe(true);
    await bench.engine.getImage(image).remove();
  });

  test('goes when neither a container nor a kept release needs it, and not before its time', async () => {
    const image = await push(open, 'team/unneeded', 'unneeded');
    const spec = task(image);
    await bench.runtime.run!(spec, newContext());
    const trim = (keptImages: string[], pulledSeconds: number) =>
      bench.runtime.trimCaches!({ buildCacheBytes: null, keptImages, pulledSeconds }, AbortSignal.timeout(60_000));
    await trim([], 0);
    expect(await isThere(spec)).toBe(true);
    await bench.runtime.removeTasks!(spec.identity, [spec.name]);
    await trim([image], 0);
    await trim([], 3600);
    expect(await isThere(spec)).toBe(true);
    expect(await trim([], 0)).toContain(`The image ${image} was removed: nothing needs it.`);
    expect(await isThere(spec)).toBe(false);
  });

  test('counts as ours on the disk only if we pulled it', async () => {
    const signal = AbortSignal.timeout(60_000);
    const spec = task(await push(open, 'team/counted', 'x'.repeat(100)));
    const before = await bench.runtime.diskUse!(signal);
    await bench.runtime.run!(spec, newContext());
    expect((await bench.runtime.diskUse!(signal)).images).toBeGreaterThan(before.images);
  });
});
