import { vi } from 'vitest';
import { parse } from 'yaml';
import type { Cluster } from '#runtimes/kubernetes/cluster.ts';
import type { TestCluster } from '#test/harness/kubernetes-cluster.ts';

const COLLECTIONS: Record<string, string> = {
  Namespace: '/api/v1/namespaces',
  ServiceAccount: '/api/v1/namespaces/{namespace}/serviceaccounts',
  Secret: '/api/v1/namespaces/{namespace}/secrets',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
};

/** Object of the manifest that `quarterdeck cluster rbac` prints. */
export interface ManifestObject {
  kind: string;
  metadata: { name: string; namespace?: string };
  roleRef?: { name: string };
}

/** Names what is of the whole cluster after a namespace: other tests make the same account. */
const named = (object: ManifestObject, name: string): ManifestObject =>
  object.kind.startsWith('ClusterRole')
    ? { ...object, metadata: { name }, ...(object.roleRef ? { roleRef: { ...object.roleRef, name } } : {}) }
    : object;

/** Creates the account that `quarterdeck cluster rbac` prints; returns its kubeconfig. */
export async function makeAccount(
  { kubeconfig }: TestCluster,
  { connection }: Cluster,
  objects: ManifestObject[],
  namespace: string,
): Promise<string> {
  for (const object of objects) {
    const collection = COLLECTIONS[object.kind]!.replace('{namespace}', namespace);
    await connection.call('POST', collection, { body: named(object, namespace) });
  }
  const path = `/api/v1/namespaces/${namespace}/secrets/quarterdeck-token`;
  const secret = () => connection.get<{ data?: { token?: string } }>(path);
  const token = await vi.waitUntil(async () => (await secret()).data?.token, { timeout: 15_000 });
  const config = parse(kubeconfig) as { users: { name: string; user: object }[] };
  config.users[0]!.user = { token: String(Buffer.from(token, 'base64')) };
  return JSON.stringify(config);
}
