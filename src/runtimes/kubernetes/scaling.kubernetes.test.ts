import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { newContext, newIdentity, newSpec, nextSpec } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { installApis } from '#test/harness/kubernetes/apis.ts';
import { startMetricsApi, type MetricsApi } from '#test/harness/kubernetes/metrics-api.ts';
import { pathOf } from './cluster.ts';
import { createKubernetesRuntime, type KubernetesRuntime } from './index.ts';
import type { FoundDeployment } from './kinds.ts';
import { namespaceOf } from './labels.ts';
import { openCluster, removeMade } from './testing.ts';

const environment = inject('kubernetes');
/** Test of what a whole cluster has: only for a cluster that the tests started. */
const ownTest = test.skipIf(environment.directory === null);
const { options, cluster } = openCluster(environment, randomUUID());
let runtime: KubernetesRuntime;
let metrics: MetricsApi;

/** Load that is a fifth of what an instance requests. */
const CALM = { cpu: '10m', memory: '8Mi' };
const BUSY = { cpu: '100m', memory: '8Mi' };

function specOf(changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
  const script = 'trap "exit 0" TERM; mkdir -p /www; echo ok > /www/healthz; httpd -f -p 8080 -h /www & wait';
  return newSpec(newIdentity(cluster.installation), BUSYBOX_IMAGE, {
    entrypoint: ['sh', '-c', script],
    resources: { cpuMilli: 50, memoryMib: 32 },
    instances: { min: 1, max: 3 },
    scaling: { cpuPercent: 60, memoryPercent: null },
    ...changes,
  });
}

async function deploy(spec: WorkloadSpec) {
  const context = newContext();
  const handle = await runtime.submit(spec, context);
  await runtime.progress!(handle, context);
  return { handle, lines: context.lines };
}

const find = <T extends object>(kind: string, { identity, hostname }: WorkloadSpec) =>
  cluster.connection.get<T>(pathOf(kind, namespaceOf(identity), hostname));
const replicasOf = async (spec: WorkloadSpec) => (await find<FoundDeployment>('Deployment', spec)).spec.replicas;
const untilReplicas = (spec: WorkloadSpec, count: number) =>
  until(
    () => replicasOf(spec),
    (replicas) => replicas === count,
    60_000,
  );

/** Returns the field managers that own the number of replicas. */
async function ownersOfReplicas(spec: WorkloadSpec): Promise<(string | undefined)[]> {
  const { metadata } = await find<FoundDeployment>('Deployment', spec);
  return metadata
    .managedFields!.filter(({ fieldsV1 }) => 'f:replicas' in ((fieldsV1?.['f:spec'] ?? {}) as object))
    .map(({ manager }) => manager);
}

beforeAll(async () => {
  metrics = await startMetricsApi(environment);
  metrics.pretend(CALM);
  runtime = createKubernetesRuntime(options);
});
afterAll(async () => {
  await metrics.stop();
  await removeMade(cluster);
  await cluster.connection.close();
  await runtime.close();
});

ownTest('the nodes of a cluster are told with their sizes and their use', async () => {
  metrics.pretend({ cpu: '500m', memory: '64Mi' });
  const [node, ...others] = await runtime.nodes!();
  metrics.pretend(CALM);
  expect(others).toEqual([]);
  expect(node).toMatchObject({
    architecture: expect.stringMatching(/^(amd64|arm64)$/),
    operatingSystem: 'linux',
    kubeletVersion: expect.stringMatching(/^v1\./),
    isUnschedulable: false,
    usage: { cpuMilli: 500, memoryBytes: 64 * 2 ** 20 },
  });
  expect(node!.capacity.cpuMilli).toBeGreaterThanOrEqual(1000);
  expect(node!.capacity.memoryBytes).toBeGreaterThan(2 ** 30);
  expect(node!.allocatable.pods).toBeGreaterThan(0);
});

ownTest(
  'a service is scaled by load; redeployed, restarted, stopped and given a fixed number it keeps what it should have',
  { timeout: 120_000 },
  async () => {
    const spec = specOf();
    const { handle, lines } = await deploy(spec);
    expect(lines).toEqual([]);
    expect(await ownersOfReplicas(spec)).not.toContain('quarterdeck');
    metrics.pretend(BUSY);
    await untilReplicas(spec, 3);
    // A new release and a restart keep the number that the load needs.
    const { handle: next } = await deploy(nextSpec(spec));
    expect(await replicasOf(spec)).toBe(3);
    const restarted = await runtime.restart(next, 3, newContext());
    await runtime.progress!(restarted, newContext());
    expect(await replicasOf(spec)).toBe(3);
    await expect.poll(() => runtime.observe(restarted)).toMatchObject({ state: 'running', generation: 2 });
    await runtime.stop({ ...spec.identity, generation: 4 }, next, newContext());
    expect(await replicasOf(spec)).toBe(0);
    await expect(find('HorizontalPodAutoscaler', spec)).rejects.toMatchObject({ status: 404 });
    expect(await runtime.observe(handle)).toMatchObject({ state: 'stopped' });
    // Started again it has at least its minimum, and an autoscaler.
    const again = await runtime.restart(next, 5, newContext());
    await runtime.progress!(again, newContext());
    await expect.poll(() => runtime.observe(again)).toMatchObject({ state: 'running' });
    await find('HorizontalPodAutoscaler', spec);
    const fixed = nextSpec(
      { ...spec, identity: { ...spec.identity, generation: 5 } },
      { instances: { min: 2, max: 2 } },
    );
    await deploy(fixed);
    expect(await replicasOf(spec)).toBe(2);
    expect(await ownersOfReplicas(spec)).toContain('quarterdeck');
    await expect(find('HorizontalPodAutoscaler', spec)).rejects.toMatchObject({ status: 404 });
    expect(await find('PodDisruptionBudget', spec)).toMatchObject({ spec: { maxUnavailable: 1 } });
    await runtime.remove({ ...spec.identity, generation: 2 ** 40 }, null, newContext());
    expect(await runtime.observe(handle)).toMatchObject({ state: 'absent' });
  },
);

ownTest('a candidate that is taken back leaves number and autoscaler of the release that serves', async () => {
  const spec = specOf({ instances: { min: 2, max: 3 } });
  metrics.pretend(CALM);
  await deploy(spec);
  const bad = nextSpec(spec, {
    entrypoint: ['sh', '-c', 'exit 3'],
    readyTimeoutSeconds: 4,
    instances: { min: 1, max: 1 },
  });
  await expect(deploy(bad)).rejects.toMatchObject({ code: 'not_ready' });
  expect(await replicasOf(spec)).toBe(2);
  expect(await find('HorizontalPodAutoscaler', spec)).toMatchObject({ spec: { minReplicas: 2, maxReplicas: 3 } });
});

ownTest('a service tells CPU and memory of its instances as the cluster measures them', async () => {
  const { handle } = await deploy(specOf({ instances: { min: 1, max: 1 } }));
  metrics.pretend({ cpu: '12345678n', memory: '2048Ki' });
  const [one] = await runtime.metrics!(handle);
  expect(one).toMatchObject({
    cpuMilli: 12,
    memoryBytes: 2 ** 21,
    cpuLimitMilli: 50,
    memoryLimitBytes: 2 ** 25,
    restarts: 0,
  });
  metrics.pretend(null);
  const [real] = await runtime.metrics!(handle);
  expect(real!.memoryBytes).toBeGreaterThan(0);
});

ownTest(
  'a service is scaled by events where the cluster has KEDA, waits without an instance, and is refused where it has none',
  async () => {
    const eventScaling = {
      pollingSeconds: 15,
      cooldownSeconds: 60,
      scalers: [
        {
          type: 'rabbitmq',
          metadata: { queueName: 'orders', mode: 'QueueLength', value: 20 },
          authentication: { name: 'broker', config: 'env: [{parameter: host, name: BROKER_URL}]' },
        },
      ],
    };
    const spec = specOf({ instances: { min: 0, max: 3 }, eventScaling });
    expect(await runtime.check()).toMatchObject({ missing: { keda: expect.stringContaining('has no KEDA') } });
    await expect(deploy(spec)).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining('has no KEDA'),
    });
    const removeApis = await installApis(environment);
    try {
      expect(await runtime.check()).not.toHaveProperty('missing.keda');
      const { handle } = await deploy(spec);
      expect(await find('ScaledObject', spec)).toMatchObject({ spec: { minReplicaCount: 0, maxReplicaCount: 3 } });
      await cluster.connection.get(pathOf('TriggerAuthentication', namespaceOf(spec.identity), `${spec.hostname}-0`));
      await expect.poll(() => runtime.observe(handle)).toMatchObject({ state: 'running', instances: [] });
      await deploy(nextSpec(spec, { eventScaling: undefined, instances: { min: 1, max: 1 } }));
      await expect(find('ScaledObject', spec)).rejects.toMatchObject({ status: 404 });
      expect(await replicasOf(spec)).toBe(1);
      await runtime.remove({ ...spec.identity, generation: 2 ** 40 }, null, newContext());
    } finally {
      await removeApis();
    }
    expect(await runtime.check()).toMatchObject({ missing: { keda: expect.any(String) } });
  },
);
