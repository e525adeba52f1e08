import { expect, onTestFinished, test } from 'vitest';
import { newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { ApiServer } from './api-server.fixture.ts';
import { pathOf } from './cluster.ts';
import { identityLabels, namespaceOf } from './labels.ts';
import { removeService } from './lifecycle.ts';

async function withService() {
  const { api, cluster, close } = await ApiServer.start();
  onTestFinished(close);
  const identity = newIdentity('test');
  const namespace = namespaceOf(identity);
  const path = pathOf('Deployment', namespace, 'app');
  api.put(path, { metadata: { name: 'app', labels: identityLabels(identity) } });
  const refuse = (kind: 'Job' | 'Deployment') => {
    api.refuse = (call) => (call === `GET ${pathOf(kind, namespace)}` ? 403 : null);
  };
  return { api, path, refuse, remove: () => removeService(cluster, identity, newContext()) };
}

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
