import { expect, onTestFinished, test } from 'vitest';
import { newIdentity } from '#runtimes/contract/fixture.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { ApiServer } from './api-server.fixture.ts';
import { identityLabels, namespaceOf } from './labels.ts';
import { listWorkloads } from './observe.ts';

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
