import { expect, onTestFinished, test } from 'vitest';
import { newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import type { Handle, WorkloadIdentity } from '#runtimes/runtime.ts';
import { ApiServer } from './api-server.fixture.ts';
import { pathOf } from './cluster.ts';
import { API } from './extensions.ts';
import { identityLabels, namespaceOf } from './labels.ts';
import { deploymentOf } from './objects.ts';
import { listWorkloads, observeService } from './observe.ts';
import { changeRecord } from './record/index.ts';

test('workloads are those in the namespaces of their environments, whatever others label or write there', async () => {
  const { api, cluster, close } = await ApiServer.start();
  onTestFinished(close);
  const [mine, other] = [newIdentity('test'), newIdentity('test')];
  const put = (collection: string, name: string, namespace: string, of: WorkloadIdentity, parts: object = {}) =>
    api.put(`${collection}/${namespace}/${name}`, {
      metadata: { name, namespace, labels: identityLabels(of) } as never,
      ...parts,
    });
  put('/apis/apps/v1/deployments', 'app', namespaceOf(mine), mine, { status: { replicas: 1 } });
  put('/apis/apps/v1/deployments', 'false', namespaceOf(mine), other, { status: { replicas: 1 } });
  put('/api/v1/configmaps', 'record', namespaceOf(mine), mine, { data: { record: 'garbage' } });
  const found = await listWorkloads(cluster);
  expect(found.map(({ identity, state }) => [identity.serviceId, state])).toEqual([[mine.serviceId, 'running']]);
});

test('a service without a minimum is idle while KEDA wants no instance, and not well while one that it wants is not ready', async () => {
  const { api, cluster, close } = await ApiServer.start();
  onTestFinished(close);
  const identity = newIdentity('test');
  const namespace = namespaceOf(identity);
  const spec = newSpec(identity, 'shop:1', { ports: [], routes: [] });
  const { hostname } = spec;
  const { spec: applied, ...deployment } = deploymentOf({ ...spec, eventScaling: undefined });
  const autoscaler = { apiVersion: API.keda, kind: 'ScaledObject', metadata: { name: hostname, namespace }, spec: { minReplicaCount: 0, maxReplicaCount: 3 } }; // prettier-ignore
  const { replicas: _, ...unsized } = applied;
  const serving = { generation: 1, deployment: { ...deployment, spec: unsized }, autoscaler };
  await changeRecord(cluster, identity, () => ({
    generation: 1,
    hostname,
    serving,
    candidate: null,
    isStopped: false,
  }));
  const handle: Handle = { format: 1, runtime: 'kubernetes', identity, data: { hostname } };
  const observe = async (replicas: number, pods: object[]) => {
    api.put(pathOf('Deployment', namespace, hostname), { ...deployment, spec: { ...unsized, replicas } } as never);
    for (const [n, status] of pods.entries())
      api.put(pathOf('Pod', namespace, `app-${n}`), {
        metadata: { name: `app-${n}`, labels: { ...identityLabels(identity), 'quarterdeck.generation': '1' } },
        spec: { containers: [{ name: 'app' }] },
        status,
      });
    const { state, message } = await observeService(cluster, handle);
    return [state, message];
  };
  expect(await observe(0, [])).toEqual(['running', '']);
  expect(await observe(1, [])).toEqual(['partial', '0 of 1 instances are ready.']);
  const waiting = { restartCount: 3, ready: false, name: 'app', state: { waiting: { reason: 'CrashLoopBackOff' } } };
  expect(await observe(1, [{ phase: 'Running', containerStatuses: [waiting] }])).toMatchObject(['failed', expect.stringContaining('0 of 1')]); // prettier-ignore
  expect(await observe(1, [{ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }])).toEqual([
    'running',
    '',
  ]);
});
