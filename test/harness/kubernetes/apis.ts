import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import type { TestCluster } from '#test/harness/kubernetes-cluster.ts';
import { hasCondition, KubernetesApi, type KubernetesObject } from '#test/harness/kubernetes/api.ts';
import { waitFor } from '#test/harness/kubernetes/wait-for.ts';

const SCRIPT = path.resolve(import.meta.dirname, '../../../.ci/kubernetes-apis');
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/**
 * Installs the definitions of the Gateway API, cert-manager and KEDA in a cluster. The programs that act on their objects are not there.
 * Returns a function that removes the definitions with all of their objects.
 */
export async function installApis(cluster: TestCluster): Promise<() => Promise<void>> {
  const { stdout } = await promisify(execFile)(SCRIPT, { timeout: 300_000 });
  const folder = stdout.trim();
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml'));
  const texts = await Promise.all(files.map((file) => readFile(path.join(folder, file), 'utf8')));
  const definitions = texts.map((text) => parse(text) as KubernetesObject);
  const api = new KubernetesApi(cluster.kubeconfig);
  for (const definition of definitions) await api.create(DEFINITIONS, definition);
  for (const { metadata } of definitions)
    await waitFor(metadata.name, async () =>
      hasCondition(await api.get(`${DEFINITIONS}/${metadata.name}`), 'Established'),
    );
  return async () => {
    for (const { metadata } of definitions) await api.delete(`${DEFINITIONS}/${metadata.name}`);
    for (const { metadata } of definitions)
      await waitFor(
        `the end of ${metadata.name}`,
        async () => (await api.call('GET', `${DEFINITIONS}/${metadata.name}`)).status === 404,
      );
    await api.close();
  };
}
