import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { newContext, newIdentity, newSpec, newTask, nextSpec } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createFakeRuntime, type FakeCall } from '#runtimes/fake/index.ts';
import { RuntimeError, type TaskSpec } from '#runtimes/runtime.ts';
import { describeRuntimeContract } from '#runtimes/runtime.contract.ts';

const without = {
  siblings: 'instances of the fake have no network of their own',
  programs: 'it runs none',
  egress: 'nothing is kept in',
};

describeRuntimeContract(
  'fake',
  async ({ router, directory }) => {
    const runtime = createFakeRuntime({ router, directory });
    return {
      runtime,
      leftovers: async (identity) => runtime.leftovers(identity),
      reopen: async () => createFakeRuntime({ router, directory }),
    };
  },
  { without },
);

const spec = newSpec(newIdentity('test'), 'fake:image');
const directories: string[] = [];

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'fake-runtime-'));
  directories.push(directory);
  return directory;
}

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

describe('the fake runtime', () => {
  test('fails at the ordered call of a verb only, and changes nothing then', async () => {
    const runtime = createFakeRuntime({ failAt: { submit: 2 } });
    const handle = await runtime.submit(spec, newContext());
    await expect(runtime.submit(nextSpec(spec), newContext())).rejects.toMatchObject({ code: 'failed' });
    expect(await runtime.observe(handle)).toMatchObject({ state: 'running', generation: 1 });
    await runtime.submit(nextSpec(spec), newContext());
    expect(await runtime.observe(handle)).toMatchObject({ generation: 2 });
  });

  test('fails with the given error', async () => {
    const error = new RuntimeError('unreachable', 'The cluster does not answer.');
    const runtime = createFakeRuntime({ failAt: { stop: { call: 1, error } } });
    const handle = await runtime.submit(spec, newContext());
    await expect(runtime.stop(handle.identity, handle, newContext())).rejects.toBe(error);
  });

  test('hangs until it is aborted', async () => {
    const runtime = createFakeRuntime({ hangAt: { submit: 1 } });
    const abort = new AbortController();
    const applying = runtime.submit(spec, newContext(abort.signal));
    const early = await Promise.race([applying, new Promise((resolve) => setTimeout(resolve, 100, 'hangs'))]);
    expect(early).toBe('hangs');
    abort.abort();
    await expect(applying).rejects.toMatchObject({ code: 'aborted' });
  });

  test('can be ordered in its folder, for a process that runs already, and every call is then written down', async () => {
    const directory = newDirectory();
    const runtime = createFakeRuntime({ directory });
    await runtime.check();
    const journal = join(directory, 'journal');
    writeFileSync(join(directory, 'faults'), JSON.stringify({ failAt: { submit: 1 }, journal }));
    await expect(runtime.submit(spec, newContext())).rejects.toThrow('told to fail at call 1 of submit');
    await runtime.check();
    expect(readFileSync(journal, 'utf8')).toBe(`${JSON.stringify({ pid: process.pid, verb: 'check' })}\n`);
  });

  test('takes as much longer as ordered', async () => {
    const runtime = createFakeRuntime({ delayMs: { submit: 150 } });
    const started = performance.now();
    await runtime.submit(spec, newContext());
    expect(performance.now() - started).toBeGreaterThanOrEqual(149);
  });

  test('remembers the calls it got', async () => {
    const runtime = createFakeRuntime();
    const handle = await runtime.submit(spec, newContext());
    await runtime.observe(handle);
    expect(runtime.calls).toEqual([
      { verb: 'submit', serviceId: spec.identity.serviceId, generation: 1 },
      { verb: 'observe', serviceId: spec.identity.serviceId, generation: 1 },
    ]);
  });

  test('masks secrets in its log', async () => {
    const runtime = createFakeRuntime();
    const failing = { ...spec, environment: { FAIL_START: 'hunter22' }, secrets: ['hunter22'] };
    await expect(runtime.submit(failing, newContext())).rejects.toMatchObject({ code: 'not_ready' });
    const handle = { format: 1, runtime: 'fake', identity: spec.identity, data: {} };
    const texts: string[] = [];
    for await (const line of runtime.logs(handle, { tail: 9, follow: false, signal: newContext().signal }))
      texts.push(line.text);
    expect(texts).toEqual(['cannot start: FAIL_START is ***']);
  });

  test('another process goes on with the folder of one that died in the middle, and serves', async () => {
    const directory = newDirectory();
    const program = `
      const { createFakeRuntime } = await import('#runtimes/fake/index.ts');
      const { MemoryRouter } = await import('#runtimes/contract/memory-router.ts');
      const runtime = createFakeRuntime({ directory: process.argv[1], router: new MemoryRouter(), dieAt: { restart: 1 } });
      const context = { signal: new AbortController().signal, log() {} };
      const handle = await runtime.submit(JSON.parse(process.argv[2]), context);
      await runtime.restart(handle, 2, context);
      console.log('not reached');
    `;
    const args = ['--input-type=module', '-e', program, directory, JSON.stringify(spec)];
    const died = spawnSync(process.execPath, args, { cwd: new URL('../../..', import.meta.url), encoding: 'utf8' });
    expect(died).toMatchObject({ status: 137, stdout: '' });
    const router = new MemoryRouter();
    const runtime = createFakeRuntime({ directory, router });
    const handle = { format: 1, runtime: 'fake', identity: spec.identity, data: {} };
    expect(await runtime.observe(handle)).toMatchObject({ state: 'running', generation: 1 });
    expect((await router.get(spec.routes[0]!.host, '/')).status).toBe(200);
    await runtime.close();
  });
});

describe('executions of the fake', () => {
  const { serviceId } = spec.identity;
  const task = (changes: Partial<TaskSpec> = {}) =>
    newTask(spec.identity, 'fake:image', [], { arguments: ['migrate'], name: 'one', ...changes });

  test('end at once with status 0, and are remembered', async () => {
    const runtime = createFakeRuntime();
    expect(await runtime.run!(task({ outputPath: '/out.json' }), newContext())).toMatchObject({
      reason: 'exited',
      exitCode: 0,
      signal: null,
      output: null,
    });
    await runtime.removeTasks!(spec.identity, ['one']);
    expect(runtime.tasksOf(serviceId)).toMatchObject([{ name: 'one', arguments: ['migrate'] }]);
    expect(runtime.leftovers(spec.identity)).toEqual([]);
  });

  test('go as they are ordered for their service', async () => {
    const runtime = createFakeRuntime({ outcomes: { '*': { exitCode: 9 } } });
    runtime.onTask(serviceId, ({ name }) => ({ exitCode: 3, lines: [`this is ${name}`], output: '{}' }));
    const context = newContext();
    expect(await runtime.run!(task(), context)).toMatchObject({ exitCode: 3, output: null });
    expect(context.lines).toEqual(['this is one']);
    runtime.onTask(serviceId, () => ({ output: '{"a":1}' }));
    expect(await runtime.run!(task({ name: 'two', outputPath: '/o' }), newContext())).toMatchObject({
      output: '{"a":1}',
    });
    runtime.onTask(serviceId, null);
    expect(await runtime.run!(task({ name: 'three' }), newContext())).toMatchObject({ exitCode: 9 });
  });

  test('that are removed while they run end for those who wait', async () => {
    const runtime = createFakeRuntime();
    const begun = Promise.withResolvers<void>();
    runtime.onTask(serviceId, () => {
      begun.resolve();
      return { seconds: null };
    });
    const running = runtime.run!(task(), newContext());
    await begun.promise;
    await until(
      async () => runtime.leftovers(spec.identity),
      (left) => left.length === 1,
    );
    await runtime.removeTasks!(spec.identity, ['one']);
    expect(await running).toMatchObject({ reason: 'lost', exitCode: null });
  });

  test('are not begun again by a process that goes on for one that died right after the beginning', async () => {
    const directory = newDirectory();
    const journal = join(directory, 'journal');
    const program = `
      const { createFakeRuntime } = await import('#runtimes/fake/index.ts');
      const [directory, journal, task] = process.argv.slice(1);
      const outcomes = { '*': { lines: ['hello'], exitCode: 5, seconds: 1 } };
      const runtime = createFakeRuntime({ directory, journal, outcomes });
      const context = { signal: new AbortController().signal, log: (line) => process.kill(process.pid, 'SIGKILL') };
      await runtime.run(JSON.parse(task), context);
    `;
    const args = ['--input-type=module', '-e', program, directory, journal, JSON.stringify(task())];
    const died = spawnSync(process.execPath, args, { cwd: new URL('../../..', import.meta.url), encoding: 'utf8' });
    expect(died).toMatchObject({ signal: 'SIGKILL', stderr: '' });
    const runtime = createFakeRuntime({ directory, journal });
    const context = newContext();
    expect(await runtime.run!(task(), context)).toMatchObject({ reason: 'exited', exitCode: 5 });
    expect(context.lines).toContain('hello');
    const verbs = readFileSync(journal, 'utf8')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as FakeCall).verb);
    expect(verbs).toEqual(['run', 'begun', 'run']);
  });
});
