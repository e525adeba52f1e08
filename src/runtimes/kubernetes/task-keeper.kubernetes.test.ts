import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newContext, newIdentity, newTask } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { TaskSpec } from '#runtimes/runtime.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { list, pathOf } from './cluster.ts';
import { createKubernetesRuntime, type KubernetesRuntime } from './index.ts';
import type { Pod } from './kinds.ts';
import { namespaceOf } from './labels.ts';
import { ofTask } from './task-objects.ts';
import { leftoversOf, openCluster, removeMade } from './testing.ts';

const installation = randomUUID();
const { options, cluster } = openCluster(inject('kubernetes'), installation);
let runtime: KubernetesRuntime;
let other: KubernetesRuntime;

const OUTPUT = '/answer/output.json';
const fill = (bytes: number) => `head -c ${bytes} /dev/zero | tr '\\0' x > ${OUTPUT}`;

const taskOf = (script: string, changes: Partial<TaskSpec> = {}): TaskSpec =>
  newTask(newIdentity(installation), BUSYBOX_IMAGE, [], {
    entrypoint: ['sh', '-c', script],
    arguments: [],
    resources: { cpuMilli: 50, memoryMib: 32 },
    outputPath: OUTPUT,
    hasShell: true,
    ...changes,
  });

const run = (spec: TaskSpec, by = runtime) => by.run!(spec, newContext());

/** Returns the only pod of an execution. */
async function podOf(spec: TaskSpec): Promise<Pod> {
  const pods = await list<Pod>(cluster, 'Pod', namespaceOf(spec.identity), ofTask(spec));
  expect(pods).toHaveLength(1);
  return pods[0]!;
}

beforeAll(() => {
  runtime = createKubernetesRuntime(options);
  other = createKubernetesRuntime(options);
});
afterAll(async () => {
  await removeMade(cluster);
  await cluster.connection.close();
  await Promise.all([runtime.close(), other.close()]);
});

describe('an output file of an image with a shell', () => {
  test(
    'has up to 1 MiB, and is read again by another control plane until the execution is removed',
    { timeout: 60_000 },
    async () => {
      const spec = taskOf(`${fill(2 ** 20 - 3)}; printf 'üz' >> ${OUTPUT}`);
      const end = await run(spec);
      expect(end).toMatchObject({ reason: 'exited', exitCode: 0 });
      expect(end.output).toBe(`${'x'.repeat(2 ** 20 - 3)}üz`);
      expect(await run(spec, other)).toEqual(end);
      await runtime.removeTasks!(spec.identity, [spec.name]);
      expect((await leftoversOf(cluster, spec.identity)).filter((name) => /^(Job|Pod|Secret) /.test(name))).toEqual([]);
    },
  );

  test('above 1 MiB is refused with both sizes; none is none', { timeout: 60_000 }, async () => {
    await expect(run(taskOf(fill(2 ** 20 + 1)))).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringMatching(/\/answer\/output\.json.*1048577.*1 MiB/),
    });
    expect(await run(taskOf('exit 0'))).toMatchObject({ exitCode: 0, output: null });
    expect(await run(taskOf(`${fill(9)}; exit 3`))).toMatchObject({ exitCode: 3, output: null });
  });

  test('stands neither in the log nor in the pod, whose keeper has no variables', { timeout: 60_000 }, async () => {
    const spec = taskOf(`echo "word-$GIVEN" > ${OUTPUT}; echo told`, { environment: { GIVEN: 'hunter22' } });
    const context = newContext();
    expect(await runtime.run!(spec, context)).toMatchObject({ output: 'word-hunter22\n' });
    expect(context.lines).toContain('told');
    const pod = await podOf(spec);
    expect(context.lines.join('\n') + JSON.stringify(pod)).not.toContain('hunter22');
    const [keeper] = pod.spec.containers as { name: string; env?: unknown[]; volumeMounts: unknown[] }[];
    expect([keeper!.name, keeper!.env, keeper!.volumeMounts.length]).toEqual(['output', undefined, 1]);
    expect(pod.status).toMatchObject({ qosClass: 'Guaranteed' });
  });

  test('that is a pipe without an end holds nothing up', { timeout: 60_000 }, async () => {
    expect(await run(taskOf(`mkfifo ${OUTPUT}`))).toMatchObject({ exitCode: 0, output: null });
  });

  test('that is gone with its pod is an error, and the command is not begun again', { timeout: 90_000 }, async () => {
    const spec = taskOf(fill(9));
    const end = await run(spec);
    const { metadata } = await podOf(spec);
    await cluster.connection.call('PATCH', pathOf('Pod', metadata.namespace, metadata.name), {
      body: { spec: { activeDeadlineSeconds: 1 } },
      type: 'application/merge-patch+json',
    });
    await until(
      () => podOf(spec),
      ({ status }) => status?.phase === 'Failed',
      30_000,
    );
    await expect(run(spec, other)).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringMatching(/ended well, but its output file .*its pod was ended.*run it again/),
    });
    expect((await podOf(spec)).metadata.uid).toBe(metadata.uid);
    expect(end.output).toHaveLength(9);
  });

  test('of a command that is cancelled or late ends with its pod', { timeout: 90_000 }, async () => {
    const script = `trap '${fill(9)}; exit 0' TERM; echo begun; while :; do sleep 0.1; done`;
    const late = taskOf(script, { timeoutSeconds: 2 });
    expect(await run(late)).toMatchObject({ reason: 'timeout', exitCode: null, output: null });
    expect((await podOf(late)).status).toMatchObject({ phase: 'Failed' });
    const [spec, abort] = [taskOf(script), new AbortController()];
    const context = newContext(abort.signal);
    const aborted = expect(runtime.run!(spec, context)).rejects.toMatchObject({ code: 'aborted' });
    await until(
      async () => context.lines,
      (lines) => lines.includes('begun'),
      30_000,
    );
    abort.abort(new Error('cancelled'));
    await aborted;
    expect(await run(spec)).toMatchObject({ reason: 'exited', exitCode: null, signal: 'SIGTERM', output: null });
  });
});
