import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newContext, newIdentity, newTask } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { TaskSpec } from '#runtimes/runtime.ts';
import { restartEngine } from '#test/harness/docker-engine.ts';
import { BUSYBOX_IMAGE, NODE_IMAGE } from '#test/harness/docker-images.ts';
import { LABEL, taskName } from './labels.ts';
import { openBench } from './testing.ts';
import type { DockerBench } from './testing.ts';

const testEngine = inject('docker');
let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(testEngine.socketPath);
});
afterAll(async () => {
  for (const { identity } of specs) await bench.runtime.remove(identity, null, newContext());
  await bench[Symbol.asyncDispose]();
});

const specs: TaskSpec[] = [];

/** Execution of a shell script in busybox. */
function shell(script: string, changes: Partial<TaskSpec> = {}): TaskSpec {
  const identity = changes.identity ?? newIdentity(bench.installation);
  const spec = newTask(identity, BUSYBOX_IMAGE, [], { arguments: ['sh', '-c', script], ...changes, identity });
  specs.push(spec);
  return spec;
}

const run = (spec: TaskSpec, context = newContext()) => bench.runtime.run!(spec, context);

describe('a container of an execution', () => {
  test('has its limits, is never started again, and carries whose it is', async () => {
    const spec = shell('exit 0', { resources: { cpuMilli: 300, memoryMib: 32 }, labels: { team: 'blue' } });
    await run(spec);
    const { Config: config, HostConfig: host } = await bench.engine.getContainer(taskName(spec)).inspect();
    expect(host).toMatchObject({
      NanoCpus: 300_000_000,
      Memory: 32 * 2 ** 20,
      RestartPolicy: { Name: 'no' },
      Privileged: false,
    });
    expect(config.Labels).toMatchObject({
      [LABEL.installation]: bench.installation,
      [LABEL.service]: spec.identity.serviceId,
      [LABEL.generation]: '1',
      [LABEL.task]: spec.name,
      team: 'blue',
    });
  });

  test('that needs more memory than it may have is ended, and that is told', async () => {
    const program = 'const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))';
    const spec = shell('', {
      image: NODE_IMAGE,
      arguments: ['node', '-e', program],
      resources: { cpuMilli: 1000, memoryMib: 64 },
    });
    const context = newContext();
    expect(await run(spec, context)).toMatchObject({ reason: 'exited', exitCode: null, signal: 'SIGKILL' });
    expect(context.lines).toContain('It needed more memory than its limit of 64 MiB.');
  });

  test('whose command ignores SIGTERM is ended after the grace period', async () => {
    const spec = shell('trap "" TERM; echo on; while true; do sleep 1; done', {
      timeoutSeconds: 1,
      gracePeriodSeconds: 1,
    });
    expect(await run(spec)).toMatchObject({ reason: 'timeout', exitCode: null, signal: 'SIGKILL' });
  });

  test('whose command answers SIGTERM with a good end was ended all the same', async () => {
    const spec = shell('trap "exit 0" TERM; while true; do sleep 0.1; done', {
      timeoutSeconds: 1,
      outputPath: '/tmp/o',
    });
    expect(await run(spec)).toMatchObject({ reason: 'timeout', exitCode: null, signal: 'SIGTERM', output: null });
  });

  test('that somebody else made under its name is left alone', async () => {
    const spec = shell('exit 0');
    const foreign = await bench.engine.createContainer({ name: taskName(spec), Image: BUSYBOX_IMAGE });
    await expect(run(spec)).rejects.toMatchObject({ code: 'refused', message: expect.stringContaining('not ours') });
    await bench.runtime.removeTasks!(spec.identity, [spec.name]);
    expect((await foreign.inspect()).Id).toBe(foreign.id);
    await foreign.remove();
  });

  test('that was made and never started is made anew', async () => {
    const spec = shell('cat /config', { files: [{ path: '/config', content: 'whole' }] });
    const labels = { [LABEL.installation]: bench.installation, [LABEL.service]: spec.identity.serviceId };
    await bench.engine.createContainer({ name: taskName(spec), Image: BUSYBOX_IMAGE, Labels: labels });
    const context = newContext();
    expect(await run(spec, context)).toMatchObject({ exitCode: 0 });
    expect(context.lines).toContain('whole');
  });

  test('leaves no volume of its files behind when it is removed, and takes none that another one uses', async () => {
    const spec = shell('cat /config', { files: [{ path: '/config', content: 'one' }] });
    const other = shell('cat /config; sleep 60', {
      identity: spec.identity,
      files: [{ path: '/config', content: 'two\n' }],
    });
    const volumes = async () => {
      const filters = { label: [`${LABEL.service}=${spec.identity.serviceId}`] };
      return (await bench.engine.listVolumes({ filters: filters as never })).Volumes.length;
    };
    await run(spec);
    const [abort, context] = [new AbortController(), newContext()];
    const running = run(other, { ...context, signal: abort.signal });
    const aborted = expect(running).rejects.toMatchObject({ code: 'aborted' });
    await until(
      async () => context.lines,
      (lines) => lines.includes('two'),
    );
    await bench.runtime.removeTasks!(spec.identity, [spec.name]);
    expect(await volumes()).toBe(1);
    abort.abort();
    await aborted;
    await bench.runtime.removeTasks!(spec.identity, [other.name]);
    expect(await volumes()).toBe(0);
  });
});

test('50,000 lines of both streams come once each and in their order, while the reader is slow', async () => {
  const script = 'i=0; while [ $i -lt 25000 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done';
  const context = newContext();
  expect(await run(shell(script, { timeoutSeconds: 100 }), context)).toMatchObject({ exitCode: 0 });
  const numbers = Array.from({ length: 25_000 }, (_, n) => n);
  for (const name of ['out', 'err'])
    expect(context.lines.filter((line) => line.startsWith(`${name} `))).toEqual(numbers.map((n) => `${name} ${n}`));
});

test.skipIf(testEngine.directory === null)(
  'an engine that is restarted in the middle: the end is what became of the command, each line comes once, it is not begun again',
  async () => {
    const spec = shell('echo first; sleep 120; echo last', { gracePeriodSeconds: 1, timeoutSeconds: 100 });
    const context = newContext();
    const running = run(spec, context);
    await until(
      async () => context.lines,
      (lines) => lines.includes('first'),
    );
    await restartEngine(testEngine);
    const end = await running;
    expect(end).toMatchObject({ exitCode: null, output: null });
    expect(context.lines.filter((line) => /^(first|last)$/.test(line))).toEqual(['first']);
    expect(await run(spec)).toEqual(end);
  },
);
