import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newContext, newIdentity, newSpec, nextSpec } from '#runtimes/contract/fixture.ts';
import { stored, until } from '#runtimes/contract/setup.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { startApiServer, stopApiServer } from '#test/harness/kubernetes-cluster.ts';
import { pathOf } from './cluster.ts';
import { createKubernetesRuntime, type KubernetesRuntime } from './index.ts';
import { namespaceOf } from './labels.ts';
import { applyDeployment } from './submit.ts';
import { openCluster, removeMade } from './testing.ts';

const environment = inject('kubernetes');
const installation = randomUUID();
const { options, cluster } = openCluster(environment, installation);
let runtime: KubernetesRuntime;

/** Workload that serves HTTP with busybox and ends when it is asked to. */
function specOf(changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
  const script = 'trap "exit 0" TERM; mkdir -p /www; echo ok > /www/healthz; httpd -f -p 8080 -h /www & wait';
  const identity = changes.identity ?? newIdentity(installation);
  return newSpec(identity, BUSYBOX_IMAGE, { entrypoint: ['sh', '-c', script], resources: { cpuMilli: 50, memoryMib: 32 }, ...changes }); // prettier-ignore
}

async function deploy(spec: WorkloadSpec, context = newContext()) {
  const handle = await runtime.submit(spec, context);
  await runtime.progress!(handle, context);
  return handle;
}

const remove = (spec: WorkloadSpec) => runtime.remove({ ...spec.identity, generation: 2 ** 40 }, null, newContext());

beforeAll(() => {
  runtime = createKubernetesRuntime(options);
});
afterAll(async () => {
  await removeMade(cluster);
  await cluster.connection.close();
  await runtime.close();
});

describe('a rollout', () => {
  test.skipIf(environment.directory === null)(
    'goes on while the API server is away, and is followed to its end once that is back',
    { timeout: 120_000 },
    async () => {
      const spec = specOf({ readiness: { ...specOf().readiness!, initialDelaySeconds: 4 }, readyTimeoutSeconds: 60 });
      const context = newContext();
      const handle = await runtime.submit(spec, context);
      const following = runtime.progress!(handle, context);
      await stopApiServer(environment);
      await until(
        async () => context.lines,
        (lines) => lines.some((line) => line.includes('does not answer')),
        30_000,
      );
      await startApiServer(environment);
      await following;
      await expect.poll(() => runtime.observe(handle)).toMatchObject({ state: 'running', generation: 1 });
      await remove(spec);
    },
  );

  test('tells why an image cannot be pulled while it waits', { timeout: 60_000 }, async () => {
    const context = newContext();
    const spec = { ...specOf({ readyTimeoutSeconds: 8 }), image: '127.0.0.1:1/none:1' };
    await expect(deploy(spec, context)).rejects.toMatchObject({
      code: 'not_ready',
      message: expect.stringMatching(/its image cannot be pulled: .*127\.0\.0\.1:1/),
    });
    expect(context.lines.join('\n')).toMatch(/its image cannot be pulled/);
    await remove(spec);
  });

  test('tells that no node has room, and the release before serves on', { timeout: 60_000 }, async () => {
    const spec = specOf();
    const handle = await deploy(spec);
    const large = nextSpec(spec, { resources: { cpuMilli: 900_000, memoryMib: 32 }, readyTimeoutSeconds: 4 });
    await expect(deploy(large)).rejects.toMatchObject({
      code: 'not_ready',
      message: expect.stringMatching(/no node takes it: .*Insufficient cpu/),
    });
    await expect.poll(() => runtime.observe(handle)).toMatchObject({ state: 'running', generation: 1 });
    await remove(spec);
  });

  test('tells what a quota refuses', { timeout: 60_000 }, async () => {
    const spec = specOf();
    await deploy(spec);
    const namespace = namespaceOf(spec.identity);
    await cluster.connection.call('POST', `/api/v1/namespaces/${namespace}/resourcequotas`, {
      body: { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'small' }, spec: { hard: { pods: '1' } } },
    });
    const context = newContext();
    const next = nextSpec(spec, { readyTimeoutSeconds: 4 });
    await expect(deploy(next, context)).rejects.toMatchObject({
      code: 'not_ready',
      message: expect.stringContaining('exceeded quota: small'),
    });
    expect(context.lines.join('\n')).toContain('The cluster makes no pods');
    await remove(spec);
  });

  test(
    'whose Deployment somebody deletes has failed, and the next one makes it anew',
    { timeout: 60_000 },
    async () => {
      const spec = specOf({ readiness: { ...specOf().readiness!, initialDelaySeconds: 20 } });
      const handle = await runtime.submit(spec, newContext());
      const path = pathOf('Deployment', namespaceOf(spec.identity), spec.hostname);
      const following = runtime.progress!(handle, newContext()).catch((error: unknown) => error);
      await cluster.connection.call('DELETE', path);
      expect(await following).toMatchObject({
        code: 'failed',
        message: expect.stringContaining('somebody deleted it'),
      });
      const next = await deploy(nextSpec(specOf({ identity: spec.identity })));
      await expect.poll(() => runtime.observe(next)).toMatchObject({ state: 'running', generation: 2 });
      await remove(spec);
    },
  );
});

describe('a stopped service', () => {
  test(
    'stays stopped when a candidate is taken back, and starts again when it is restarted',
    { timeout: 90_000 },
    async () => {
      const spec = specOf();
      const handle = await deploy(spec);
      // As a deployment that stops it does: with a generation of its own.
      await runtime.stop({ ...spec.identity, generation: 2 }, handle, newContext());
      const bad = nextSpec(nextSpec(spec), { entrypoint: ['sh', '-c', 'exit 3'], readyTimeoutSeconds: 4 });
      await expect(deploy(bad)).rejects.toMatchObject({ code: 'not_ready' });
      // Pods of the candidate end in their own time.
      await expect.poll(() => runtime.observe(handle)).toMatchObject({ state: 'stopped', instances: [] });
      const restarted = await runtime.restart(handle, 4, newContext());
      await runtime.progress!(restarted, newContext());
      await expect.poll(() => runtime.observe(restarted)).toMatchObject({ state: 'running', generation: 1 });
      await expect(runtime.restart(handle, 0, newContext())).rejects.toMatchObject({ code: 'superseded' });
      await remove(spec);
    },
  );
});

describe('what others do in the cluster', () => {
  test('a namespace that is not ours is never used', async () => {
    const spec = specOf();
    const name = namespaceOf(spec.identity);
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await cluster.connection.call('POST', '/api/v1/namespaces', { body });
    await expect(runtime.submit(spec, newContext())).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining(`${name} is there and not ours`),
    });
    await runtime.removeEnvironment!(spec.identity);
    const left = await cluster.connection.get<{ metadata: object }>(`/api/v1/namespaces/${name}`);
    expect(left.metadata).not.toHaveProperty('deletionTimestamp');
    await cluster.connection.call('DELETE', `/api/v1/namespaces/${name}`);
  });

  test('a namespace that somebody deletes is absent, and a deployment makes it anew', { timeout: 90_000 }, async () => {
    const spec = specOf();
    const handle = await deploy(spec);
    await cluster.connection.call('DELETE', `/api/v1/namespaces/${namespaceOf(spec.identity)}`);
    await until(
      () => runtime.observe(handle),
      ({ state }) => state === 'absent',
      60_000,
    );
    const next = await deploy(nextSpec(spec));
    await expect.poll(() => runtime.observe(next)).toMatchObject({ state: 'running', generation: 2 });
    await remove(spec);
  });

  test('fields of others stay, and ours come back with the next deployment', { timeout: 60_000 }, async () => {
    const spec = specOf();
    await deploy(spec);
    const path = pathOf('Deployment', namespaceOf(spec.identity), spec.hostname);
    const change = { metadata: { annotations: { team: 'a' } }, spec: { replicas: 0 } };
    await cluster.connection.call('PATCH', path, { body: change, type: 'application/merge-patch+json' });
    const handle = await deploy(nextSpec(spec));
    const found = await cluster.connection.get<{ metadata: { annotations: object }; spec: object }>(path);
    expect([found.metadata.annotations, found.spec]).toMatchObject([{ team: 'a' }, { replicas: 1 }]);
    await expect.poll(() => runtime.observe(handle)).toMatchObject({ state: 'running', generation: 2 });
    await remove(spec);
  });

  test(
    'a process that was suspended before it wrote changes nothing of a later release',
    { timeout: 60_000 },
    async () => {
      const spec = specOf();
      const handle = await deploy(spec);
      const path = pathOf('Deployment', namespaceOf(spec.identity), spec.hostname);
      const { metadata, ...deployment } = await cluster.connection.get<Parameters<typeof applyDeployment>[2]>(path);
      const next = await deploy(nextSpec(spec));
      const { name, namespace, labels, annotations } = metadata;
      const late = { ...deployment, metadata: { name, namespace, labels, annotations } } as typeof deployment & { metadata: typeof metadata }; // prettier-ignore
      await expect(applyDeployment(cluster, { identity: handle.identity }, late)).rejects.toMatchObject({
        code: 'superseded',
      });
      await expect.poll(() => runtime.observe(stored(next))).toMatchObject({ state: 'running', generation: 2 });
      await remove(spec);
    },
  );
});
