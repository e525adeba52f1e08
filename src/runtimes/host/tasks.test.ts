import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson } from '#kernel/private-files.ts';
import { newContext, newTask } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import { findCgroups } from '#runtimes/host/cgroups.ts';
import { commandLines, TestHost, tryMachine } from '#runtimes/host/testing.ts';
import type { RuntimeContext, TaskSpec } from '#runtimes/runtime.ts';

const { namespaces } = await tryMachine();

describe.each([
  { name: 'namespaces', works: namespaces, options: {} },
  { name: 'plain folders', works: true, options: { mode: 'plain' as const } },
])('commands that end in $name', ({ works, options }) => {
  describe.skipIf(!works || process.platform !== 'linux')('on this machine', { timeout: 60_000 }, () => {
    let host: TestHost;
    let image: string;
    beforeAll(async () => {
      host = await TestHost.open(options);
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nRUN echo built > built' });
      ({ image } = await host.build());
    });
    afterAll(() => host.close());

    const task = (script: string, changes: Partial<TaskSpec> = {}) =>
      newTask(host.identity(), image, [], { arguments: ['sh', '-c', script], ...changes });
    const run = (spec: TaskSpec, context: RuntimeContext = newContext()) => host.runtime.run!(spec, context);
    const folder = ({ identity, name }: TaskSpec) =>
      join(host.dataDir, 'host', 'services', identity.serviceId, 'tasks', `${identity.generation}-${name}`);

    test('an image of a registry is refused with the clusters that can run it', () => {
      const refusals = host.runtime.refusals(task('', { image: `docker.io/library/busybox@sha256:${'0'.repeat(64)}` }));
      expect(refusals).toEqual([expect.stringMatching(/registry.* docker .*kubernetes/)]);
    });

    test('what this machine cannot give a command is refused, with what would help', () => {
      const egress = { rules: [], allowedPrivateAddresses: [] };
      const folders = [{ path: '/given', directory: host.directory }];
      const refused = host.runtime.refusals(task('', { egress, folders, gpus: 1 }));
      const gpus = expect.stringMatching(/graphics processors: use a cluster .* docker/);
      expect(refused).toEqual(
        'mode' in options ? [expect.stringMatching(/it was chosen.*list of hosts.*docker/), gpus] : [gpus],
      );
    });

    test('what a command ran in is given back at its end, its records and its log stay until it is removed', async () => {
      const spec = task('echo hello');
      await run(spec);
      expect(readdirSync(folder(spec)).toSorted()).toEqual(
        expect.arrayContaining(['end.json', 'log', 'state.json', 'task.json']),
      );
      for (const name of ['upper', 'tree', 'files', 'plan.json']) expect(readdirSync(folder(spec))).not.toContain(name);
      await host.runtime.removeTasks!(spec.identity, [spec.name]);
      expect(readdirSync(join(host.dataDir, 'host', 'services'))).not.toContain(spec.identity.serviceId);
    });

    test('secrets are in no file of an ended command, and masked in its log', async () => {
      const secret = 'hunter22-of-the-command';
      const spec = task('echo it is $TOKEN', { environment: { TOKEN: secret }, secrets: [secret] });
      const context = newContext();
      await run(spec, context);
      expect(context.lines).toContain('it is ***');
      for (const name of readdirSync(folder(spec), { withFileTypes: true }).filter((entry) => entry.isFile()))
        expect(readFileSync(join(folder(spec), name.name), 'utf8'), name.name).not.toContain(secret);
    });

    test('a link in the place of the output file shows nothing of the machine', async () => {
      const [outside, settings] = [join(host.directory, 'outside'), join(host.repository, 'Dockerfile')];
      writeFileSync(outside, 'of the machine');
      const script = (target: string) => `mkdir -p out; ln -s ${target} out/result.json`;
      for (const target of [outside, settings, join('../../../../../../..', settings)]) {
        const { output } = await run(task(script(target), { outputPath: '/app/out/result.json' }));
        expect(output, target).toBe(null);
      }
    });

    test('after a restart of the machine a command that ran is lost, one that had ended tells its end', async () => {
      const [ended, running] = [task('exit 4'), task('echo on; sleep 60')];
      await run(ended);
      const context = newContext();
      const waiting = run(running, context);
      await until(
        async () => context.lines,
        (lines) => lines.includes('on'),
      );
      const rebooted = await host.reopen({ ...options, bootId: 'another-run-of-the-machine' });
      expect(await rebooted.run!(running, newContext())).toMatchObject({ reason: 'lost', exitCode: null });
      expect(await rebooted.run!(ended, newContext())).toMatchObject({ reason: 'exited', exitCode: 4 });
      await rebooted.close();
      await host.runtime.removeTasks!(running.identity, [running.name]);
      await waiting;
    });

    test('it outlives the process that began it by kill -9, ends when its time is over, and is taken over', async () => {
      const spec = task('echo begun $$; sleep 60', { timeoutSeconds: 5 });
      const program = `
        const { createHostRuntime } = await import('#runtimes/host/index.ts');
        const { MemoryRouter } = await import('#runtimes/contract/memory-router.ts');
        const [dataDir, installation, options, spec] = process.argv.slice(1);
        const given = { dataDir, installation, router: new MemoryRouter(), log() {}, ...JSON.parse(options) };
        const runtime = await createHostRuntime(given);
        const log = (line) => line.startsWith('begun') && process.kill(process.pid, 'SIGKILL');
        await runtime.run(JSON.parse(spec), { signal: new AbortController().signal, log });
      `;
      const args = [host.dataDir, host.installation, JSON.stringify(options), JSON.stringify(spec)];
      const child = spawn(process.execPath, ['--input-type=module', '-e', program, ...args], {
        cwd: new URL('../../..', import.meta.url),
        stdio: 'inherit',
      });
      await new Promise((resolve) => child.once('exit', resolve));
      expect(child.signalCode).toBe('SIGKILL');
      // Nobody waits for it: its shim ends it.
      await until(
        async () => readJson<{ state: string }>(join(folder(spec), 'state.json')),
        (state) => state?.state === 'stopped',
        15_000,
      );
      const context = newContext();
      expect(await run(spec, context)).toMatchObject({ reason: 'timeout', exitCode: null });
      expect(context.lines.filter((line) => line.startsWith('begun'))).toHaveLength(1);
      await until(
        async () => commandLines().filter((line) => line.includes(spec.identity.serviceId)),
        (lines) => lines.length === 0,
      );
    });

    test('more output than is rotated away is told in order, once each', async () => {
      const script =
        'i=0; while [ $i -lt 60000 ]; do echo "line $i of a log that is long enough to be rotated"; i=$((i+1)); done';
      const context = newContext();
      expect(await run(task(script, { resources: { cpuMilli: 2000, memoryMib: 128 } }), context)).toMatchObject({
        exitCode: 0,
      });
      const numbers = context.lines.flatMap((line) => /^line (\d+) /.exec(line)?.[1] ?? []).map(Number);
      expect(numbers).toEqual(Array.from({ length: 60_000 }, (_, n) => n));
    });

    test.skipIf(options.mode === 'plain' || !findCgroups('quarterdeck-test').usable)(
      'one that needs more memory than it may have is ended, and that is told',
      async () => {
        const program = 'const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))';
        const spec = task('', { arguments: ['node', '-e', program], resources: { cpuMilli: 1000, memoryMib: 96 } });
        const context = newContext();
        expect(await run(spec, context)).toMatchObject({ reason: 'exited', exitCode: null, signal: 'SIGKILL' });
        expect(context.lines).toContain('It needed more memory than its limit of 96 MiB.');
      },
    );
  });
});
