import { describe, expect, onTestFinished, test } from 'vitest';
import { newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import { ApiServer } from './api-server.fixture.ts';
import { pathOf, type Kind } from './cluster.ts';
import { API } from './extensions.ts';
import { identityLabels, namespaceOf } from './labels.ts';
import { removeService, stopService } from './lifecycle.ts';
import { deploymentOf } from './objects.ts';
import { findMade } from './made.ts';
import { changeRecord, readRecord, recordName, type ServiceRecord } from './record/index.ts';

async function withService(apis: string[] = []) {
  const { api, cluster, close } = await ApiServer.start();
  onTestFinished(close);
  api.apis = apis;
  const identity = newIdentity('test');
  const namespace = namespaceOf(identity);
  const at = (kind: Kind) => pathOf(kind, namespace, 'app');
  const path = at('Deployment');
  const put = (kind: Kind) => api.put(at(kind), { metadata: { name: 'app', labels: identityLabels(identity) } });
  put('Deployment');
  const refuse = (...kinds: Kind[]) => {
    const refused = kinds.flatMap((kind) => [`GET ${pathOf(kind, namespace)}`, `GET ${pathOf(kind)}`]);
    api.refuse = (call) => (refused.includes(call) ? 403 : null);
  };
  const remove = () => removeService(cluster, identity, null, newContext());
  return { api, cluster, identity, at, path, put, refuse, remove };
}

const record = (change: Partial<ServiceRecord>): ServiceRecord => ({
  generation: 1,
  hostname: 'app',
  serving: null,
  candidate: null,
  isStopped: false,
  ...change,
});

describe('an account without the rights to Gateways, routes, certificates and scalers', () => {
  const apis = [API.gateways, API.keda, API.certificates];
  const lacking: Kind[] = [
    'Gateway',
    'HTTPRoute',
    'GRPCRoute',
    'ListenerSet',
    'Certificate',
    'ClusterIssuer',
    'IngressClass',
    'ScaledObject',
    'TriggerAuthentication',
  ];

  test('removes a service that has none of these', async () => {
    const { api, cluster, identity, path, refuse, remove } = await withService(apis);
    await changeRecord(cluster, identity, () => record({ made: ['Service/app'] }));
    refuse(...lacking);
    await remove();
    expect(api.objects.has(path)).toBe(false);
    expect(await readRecord(cluster, identity)).toBeNull();
  });

  test('stops a service whose record was altered', async () => {
    const { api, cluster, identity, path, refuse } = await withService(apis);
    const altered = { metadata: { name: recordName(identity.serviceId) }, data: { record: '{}', seal: 'x' } };
    const recordPath = pathOf('ConfigMap', namespaceOf(identity), recordName(identity.serviceId));
    api.put(recordPath, altered);
    refuse('HTTPRoute', 'GRPCRoute', 'ListenerSet', 'Certificate', 'TriggerAuthentication', 'PodDisruptionBudget');
    expect(await findMade(cluster, identity)).toEqual([]);
    await stopService(cluster, { ...identity, generation: 2 }, null, newContext());
    expect(api.objects.has(path)).toBe(false);
    expect(await readRecord(cluster, identity)).toMatchObject({ generation: 2, isStopped: true });
  });

  test('is told the missing right where the service has one, which is not told as removed', async () => {
    const { cluster, identity, refuse, remove } = await withService(apis);
    await changeRecord(cluster, identity, () => record({ made: ['Certificate/app'] }));
    refuse(...lacking);
    await expect(remove()).rejects.toMatchObject({ status: 403 });
    expect(await readRecord(cluster, identity)).toMatchObject({ made: ['Certificate/app'] });
  });
});

describe('a service that KEDA scales', { timeout: 20_000 }, () => {
  /** Lets KEDA remove its finalizer at the third look, and notes what was there of the Deployment then. */
  function letGoLater({ api, at, path }: Awaited<ReturnType<typeof withService>>) {
    const seen: unknown[] = [];
    let looks = 0;
    api.isHeld = (deleted) => deleted === at('ScaledObject');
    api.refuse = (call) => {
      if (call !== `GET ${at('ScaledObject')}` || ++looks < 3) return null;
      seen.push(structuredClone(api.objects.get(path)));
      api.objects.delete(at('ScaledObject'));
      return null;
    };
    return seen;
  }

  test('is removed once KEDA has let its ScaledObject go: until then it may scale the Deployment again', async () => {
    const service = await withService([API.keda]);
    service.put('ScaledObject');
    const seen = letGoLater(service);
    await service.remove();
    expect(seen).toMatchObject([{ metadata: { name: 'app' } }]);
    expect(service.api.objects.has(service.path)).toBe(false);
  });

  test('is stopped once KEDA has let its ScaledObject go', async () => {
    const service = await withService([API.keda]);
    const { api, cluster, identity, path } = service;
    service.put('ScaledObject');
    const deployment = deploymentOf(newSpec(identity, 'shop:1', { hostname: 'app', storage: [] }));
    api.put(path, deployment as never);
    const scaler = { apiVersion: API.keda, kind: 'ScaledObject', metadata: { name: 'app', namespace: namespaceOf(identity) }, spec: { minReplicaCount: 0, maxReplicaCount: 3 } }; // prettier-ignore
    await changeRecord(cluster, identity, () => record({ serving: { generation: 1, deployment, autoscaler: scaler } }));
    const seen = letGoLater(service);
    await stopService(cluster, identity, null, newContext());
    expect(seen).toMatchObject([{ spec: { replicas: 1 } }]);
    expect(api.objects.get(path)).toMatchObject({ spec: { replicas: 0 } });
  });
});

test('an account without the right to Jobs removes services: it made none', async () => {
  const { api, path, refuse, remove } = await withService();
  refuse('Job');
  await remove();
  expect(api.objects.has(path)).toBe(false);
});

test('a service is not told as removed while its Deployments may not be listed', async () => {
  const { refuse, remove } = await withService();
  refuse('Deployment');
  await expect(remove()).rejects.toMatchObject({ status: 403 });
});
