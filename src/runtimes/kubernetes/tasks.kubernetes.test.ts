import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newContext, newIdentity, newTask } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { TaskEnd, TaskSpec } from '#runtimes/runtime.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { startApiServer, stopApiServer } from '#test/harness/kubernetes-cluster.ts';
import { apply, find, list, pathOf } from './cluster.ts';
import { createKubernetesRuntime, type KubernetesRuntime } from './index.ts';
import type { Job, Pod } from './kinds.ts';
import { namespaceOf } from './labels.ts';
import { environmentPolicy } from './policies.ts';
import { ensureNamespace } from './submit.ts';
import { patchJob } from './task-job.ts';
import { jobName, jobOf, newSecretNames, ofTask } from './task-objects.ts';
import { leftoversOf, openCluster, removeMade } from './testing.ts';

const environment = inject('kubernetes');
const installation = randomUUID();
const { options, cluster } = openCluster(environment, installation);
let runtime: KubernetesRuntime;
let other: KubernetesRuntime;

/** Writes a value that differs between two processes. */
const PROCESS = 'echo process $(cat /proc/sys/kernel/random/uuid)';

const taskOf = (script: string, changes: Partial<TaskSpec> = {}): TaskSpec =>
  newTask(changes.identity ?? newIdentity(installation), BUSYBOX_IMAGE, [], {
    entrypoint: ['sh', '-c', script],
    arguments: [],
    resources: { cpuMilli: 50, memoryMib: 32 },
    ...changes,
  });

async function run(spec: TaskSpec, by = runtime): Promise<{ end: TaskEnd; lines: string[] }> {
  const context = newContext();
  return { end: await by.run!(spec, context), lines: context.lines };
}

const processes = (lines: string[]) => lines.filter((line) => line.startsWith('process '));

const hasLine = (context: { lines: string[] }, pattern: RegExp) =>
  until(
    async () => context.lines,
    (lines) => lines.some((line) => pattern.test(line)),
    30_000,
  );

const jobOfTask = (spec: TaskSpec) => find<Job>(cluster, 'Job', namespaceOf(spec.identity), jobName(spec));
const podsOfTask = (spec: TaskSpec) => list<Pod>(cluster, 'Pod', namespaceOf(spec.identity), ofTask(spec));

beforeAll(() => {
  runtime = createKubernetesRuntime(options);
  other = createKubernetesRuntime(options);
});
afterAll(async () => {
  await removeMade(cluster);
  await cluster.connection.close();
  await Promise.all([runtime.close(), other.close()]);
});

describe('a command on Kubernetes', () => {
  test.skipIf(environment.directory === null)(
    'goes on while the API server is away, and each of its lines is told once',
    { timeout: 120_000 },
    async () => {
      const spec = taskOf('i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); sleep 0.2; done');
      const context = newContext();
      const running = runtime.run!(spec, context);
      await hasLine(context, /^line 5$/);
      await stopApiServer(environment);
      await hasLine(context, /does not answer/);
      await startApiServer(environment);
      expect(await running).toMatchObject({ reason: 'exited', exitCode: 0 });
      const lines = context.lines.filter((line) => line.startsWith('line '));
      expect(lines).toEqual(Array.from({ length: 50 }, (_, n) => `line ${n}`));
    },
  );

  test(
    'is begun once by two control planes, and by one whose predecessor ended in between',
    { timeout: 60_000 },
    async () => {
      const spec = taskOf(`${PROCESS}; sleep 1`, { environment: { GIVEN: 'yes' } });
      const ends = await Promise.all([run(spec), run(spec, other), run(spec)]);
      expect(new Set(ends.flatMap(({ lines }) => processes(lines))).size).toBe(1);
      expect(new Set(ends.map(({ end }) => JSON.stringify(end))).size).toBe(1);
      expect(await podsOfTask(spec)).toHaveLength(1);

      const left = taskOf(`${PROCESS}; echo $GIVEN`, { environment: { GIVEN: 'yes' } });
      await ensureNamespace(cluster, left.identity, newContext().signal);
      await apply(cluster, environmentPolicy(left.identity));
      const path = pathOf('Job', namespaceOf(left.identity));
      const abandoned = await cluster.connection.call<Job>('POST', path, { body: jobOf(left, newSecretNames(left)) });
      const { end, lines } = await run(left);
      expect([end.exitCode, processes(lines).length, lines.includes('yes')]).toEqual([0, 1, true]);
      // The predecessor was only suspended, and goes on.
      expect(await patchJob(cluster, abandoned, { spec: { suspend: false } })).toBeNull();
      expect(processes((await run(left)).lines)).toEqual(processes(lines));
    },
  );

  test('whose pod or Job somebody deletes is ended or lost, and is not begun again', { timeout: 90_000 }, async () => {
    const specs = [1, 2].map(() => taskOf(`${PROCESS}; sleep 60 & wait`, { gracePeriodSeconds: 1 }));
    const [ofPod, ofJob] = specs as [TaskSpec, TaskSpec];
    const contexts = specs.map(() => newContext());
    const running = specs.map((spec, n) => runtime.run!(spec, contexts[n]!));
    for (const context of contexts) await hasLine(context, /^process /);
    const [pod] = await podsOfTask(ofPod);
    await cluster.connection.call('DELETE', pathOf('Pod', pod!.metadata.namespace, pod!.metadata.name));
    await cluster.connection.call('DELETE', pathOf('Job', namespaceOf(ofJob.identity), jobName(ofJob)), {
      body: { propagationPolicy: 'Background' },
    });
    for (const end of await Promise.all(running))
      expect(end).toMatchObject({ reason: expect.stringMatching(/^(lost|exited)$/), exitCode: null, output: null });
    const again = await run(ofPod);
    expect(again.end).toMatchObject({ exitCode: null });
    expect(await podsOfTask(ofPod).then((pods) => pods.length)).toBeLessThan(2);
    expect(processes(again.lines).filter((line) => !contexts[0]!.lines.includes(line))).toEqual([]);
  });

  test('hands on an output file of 4,095 bytes, and refuses a longer one', { timeout: 60_000 }, async () => {
    const outputPath = '/quarterdeck-output/output.json';
    const outputOf = (bytes: number) => {
      const script = `head -c ${bytes} /dev/zero | tr '\\0' x > ${outputPath}`;
      return run(taskOf(script, { outputPath, name: `bytes-${bytes}` })).then(
        ({ end }) => end.output,
        (error: Error) => error.message,
      );
    };
    const [largest, larger, large] = await Promise.all([4095, 4096, 100_000].map(outputOf));
    expect(largest).toBe('x'.repeat(4095));
    for (const refused of [larger, large])
      expect(refused).toBe(
        `The output file ${outputPath} has 4096 bytes or more, and a Kubernetes cluster hands on at most 4095: write less into it, or run the job on a docker cluster, which takes 1 MiB.`,
      );
  });

  test('tells why it does not start, and one that is cancelled then never starts', { timeout: 90_000 }, async () => {
    const large = taskOf(PROCESS, { resources: { cpuMilli: 900_000, memoryMib: 32 } });
    const unknown = { ...taskOf(PROCESS), image: '127.0.0.1:1/none:1' };
    const refused = taskOf(PROCESS);
    await ensureNamespace(cluster, refused.identity, newContext().signal);
    await cluster.connection.call('POST', `/api/v1/namespaces/${namespaceOf(refused.identity)}/resourcequotas`, {
      body: { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'small' }, spec: { hard: { pods: '0' } } },
    });
    const reasons: [TaskSpec, RegExp][] = [
      [large, /no node takes it: .*Insufficient cpu/],
      [unknown, /its image cannot be pulled: .*127\.0\.0\.1:1/],
      [refused, /makes no pod: .*exceeded quota: small/],
    ];
    await Promise.all(
      reasons.map(async ([spec, reason]) => {
        const cancel = new AbortController();
        const context = newContext(cancel.signal);
        const running = expect(runtime.run!(spec, context)).rejects.toMatchObject({ code: 'aborted' });
        await hasLine(context, reason);
        cancel.abort(new Error('cancelled'));
        await running;
        expect(await podsOfTask(spec)).toEqual([]);
        const { end, lines } = await run(spec);
        expect(end).toMatchObject({ reason: 'exited', exitCode: null, signal: 'SIGTERM', output: null });
        expect((await run(spec)).end).toEqual(end);
        expect(processes(lines)).toEqual([]);
      }),
    );
  });

  test('that needs too much memory is told so', { timeout: 60_000 }, async () => {
    const { end, lines } = await run(taskOf('x=a; while true; do x=$x$x; done'));
    expect(end).toMatchObject({ reason: 'exited', exitCode: null, signal: 'SIGKILL' });
    expect(lines).toContain('It needed more memory than its limit of 32 MiB.');
  });

  test(
    'keeps variables and files in a Secret that goes with its Job, and its environment until then',
    { timeout: 60_000 },
    async () => {
      const secret = 'hunter22-of-a-job';
      const spec = taskOf('cat /etc/key; echo; echo $PASSWORD', {
        environment: { PASSWORD: secret },
        files: [{ path: '/etc/key', content: secret }],
        secrets: [secret],
      });
      const { end, lines } = await run(spec);
      expect(end.exitCode).toBe(0);
      expect(lines.filter((line) => line === secret)).toHaveLength(2);
      const objects = JSON.stringify([await jobOfTask(spec), await podsOfTask(spec)]);
      expect(objects).not.toMatch(new RegExp(`${secret}|${Buffer.from(secret).toString('base64')}`));
      await runtime.removeEnvironment!(spec.identity);
      expect(await jobOfTask(spec)).not.toBeNull();
      await runtime.removeTasks!(spec.identity, [spec.name]);
      await until(
        () => leftoversOf(cluster, spec.identity),
        (left) => left.length === 0,
      );
      await runtime.removeEnvironment!(spec.identity);
      await until(
        () => find(cluster, 'Namespace', undefined, namespaceOf(spec.identity)),
        (namespace) => namespace === null || namespace.metadata.deletionTimestamp !== undefined,
      );
    },
  );
});
