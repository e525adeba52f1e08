import { randomInt } from 'node:crypto';
import type Docker from 'dockerode';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { until } from '#runtimes/contract/setup.ts';
import { commandLines } from '#runtimes/host/testing.ts';
import { killInside } from './exec-end.ts';
import { listInstances } from './instances.ts';
import { makeNode } from './node.ts';
import { checkInstance } from './readiness.ts';
import { openBench } from './testing.ts';
import type { DockerBench } from './testing.ts';

let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(inject('docker').socketPath);
});
afterAll(() => bench[Symbol.asyncDispose]());

async function startedInstance() {
  const spec = bench.spec();
  await bench.apply(spec);
  const parts = {
    installation: bench.installation,
    router: bench.router,
    pool: '',
    egressImage: '',
    publishAddress: '',
  };
  const node = makeNode(bench.engine, { ...parts, log: () => undefined, supervise: async () => undefined });
  return (await listInstances(node, spec.identity))[0]!;
}

const length = () => `1000.${randomInt(1e9)}`;
const running = (text: string) => commandLines().filter((line) => line.includes(text));

test('a check that does not end in time is ended with what it started', async () => {
  const instance = await startedInstance();
  const [own, started] = [length(), length()];
  const program = `require('child_process').spawn('node', ['-e', 'setInterval(() => 0, 1000)', '${started}']); setInterval(() => 0, 1000)`;
  const check = { type: 'exec' as const, command: ['node', '-e', program, own] };
  expect(await checkInstance(bench.engine, instance, check, 3)).toBe('node did not end within 3 s');
  await expect.poll(() => [...running(own), ...running(started)]).toEqual([]);
});

test('who is not root on the machine ends processes of a container from within it', async () => {
  const instance = await startedInstance();
  const container = bench.engine.getContainer(instance.id);
  const exec = await container.exec({ Cmd: ['node', '-e', 'setInterval(() => 0, 1000)'] });
  await exec.start({ Detach: true });
  const state: Docker.ExecInspectInfo = await until(
    () => exec.inspect(),
    ({ Running: isRunning }) => isRunning,
  );
  await killInside(container, [state.Pid]);
  await expect.poll(async () => (await exec.inspect()).ExitCode).toBe(137);
});
