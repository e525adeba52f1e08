import { spawnSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, expect, inject, test, vi } from 'vitest';
import { newContext } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { openBench, type DockerBench } from './testing.ts';

const { socketPath } = inject('docker');
let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(socketPath);
});
afterEach(() => void vi.useRealTimers());
afterAll(() => bench[Symbol.asyncDispose]());

/** Replaces an instance in another process, which is killed with SIGKILL when it makes a call to the engine. */
function replaceAndDie({ identity }: WorkloadSpec, instance: string, call: 'remove' | 'rename' | 'start'): void {
  const { installation, options } = bench;
  const program = `
    const { default: Docker } = await import('dockerode');
    const { createDockerRuntime } = await import('#runtimes/docker/index.ts');
    const { MemoryRouter } = await import('#runtimes/contract/memory-router.ts');
    const { options, identity, instance, call } = JSON.parse(process.argv[1]);
    const runtime = await createDockerRuntime({ ...options, router: new MemoryRouter(), log() {} });
    const { prototype } = new Docker(options).getContainer('any').constructor;
    prototype[call] = () => process.kill(process.pid, 'SIGKILL');
    const context = { signal: new AbortController().signal, log() {} };
    await runtime.replaceInstance(identity, instance, 'it wrote too much', context);
    console.log('not reached');`;
  const given = { options: { socketPath, installation, dataDir: options.dataDir }, identity, instance, call };
  const args = ['--input-type=module', '-e', program, JSON.stringify(given)];
  const died = spawnSync(process.execPath, args, { cwd: new URL('../../..', import.meta.url), encoding: 'utf8' });
  expect(died, died.stderr).toMatchObject({ signal: 'SIGKILL', stdout: '' });
}

test.each(['rename', 'start'] as const)(
  'a replacement whose process was killed before its %s is started later, under the name of the instance',
  async (call) => {
    const spec = bench.spec();
    const handle = await bench.apply(spec);
    const [name] = await bench.containers(spec);
    replaceAndDie(spec, name!, call);
    expect((await bench.runtime.observe(handle)).state).not.toBe('running');
    // Another process may be at it.
    await bench.runtime.removeBroken!();
    expect((await bench.runtime.observe(handle)).state).not.toBe('running');

    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 120_000 });
    await bench.runtime.removeBroken!();
    const { instances } = await until(
      () => bench.runtime.observe(handle),
      ({ state }) => state === 'running',
    );
    expect(instances).toMatchObject([{ name, restarts: 1, lastExit: { reason: 'it wrote too much' } }]);
    expect(await bench.containers(spec)).toEqual([name]);
    expect(await bench.ask(spec)).toMatchObject({ release: '1' });
  },
);

test('an instance whose process was killed before its removal is replaced by the next round', async () => {
  const spec = bench.spec();
  const handle = await bench.apply(spec);
  const [name] = await bench.containers(spec);
  replaceAndDie(spec, name!, 'remove');
  expect(await bench.containers(spec)).toEqual([name, `${name}.next`]);
  await bench.runtime.replaceInstance!(spec.identity, name!, 'it wrote too much', newContext());
  expect(await bench.containers(spec)).toEqual([name]);
  await until(
    () => bench.runtime.observe(handle),
    ({ state }) => state === 'running',
  );
});
