import { readFile, stat } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import path from 'node:path';
import type { Context } from '#platform/context.ts';
import { isFirstOrganization } from '#platform/installation/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { RuntimeError, type ClusterAccess } from '#runtimes/runtime.ts';

/** Settings that tell where the cluster of this process is, and who may use it. */
type Own = Pick<Settings, 'ownCluster' | 'kubernetesHost' | 'kubernetesPort' | 'serviceAccountDir'>;

interface Cluster {
  organization_id: string;
  runtime: string;
}

/**
 * Returns whether a cluster without a kubeconfig is the one that this process runs in. The operator decides it (QUARTERDECK_OWN_CLUSTER):
 * the account of the control plane may change every environment of every organization there.
 */
export async function mayUseOwnAccount(
  { db, settings }: Pick<Context, 'db'> & { settings: Own },
  { organization_id: organizationId, runtime }: Cluster,
): Promise<boolean> {
  if (runtime !== 'kubernetes' || settings.kubernetesHost === '') return false;
  if (settings.ownCluster.includes(organizationId)) return true;
  return settings.ownCluster.includes('first') && isFirstOrganization(db, organizationId);
}

/** Returns what changes when the token of the pod's account is rotated. Throws RuntimeError without one. */
export const ownVersion = ({ serviceAccountDir }: Own): Promise<string> =>
  ofAccount(serviceAccountDir, async () => `own ${(await stat(tokenFile(serviceAccountDir))).mtimeMs}`);

/** Returns how this process reaches the cluster that it runs in. Throws RuntimeError without an account. */
export const ownAccess = ({ serviceAccountDir, kubernetesHost, kubernetesPort }: Own): Promise<ClusterAccess> =>
  ofAccount(serviceAccountDir, async () => ({
    server: `https://${isIPv6(kubernetesHost) ? `[${kubernetesHost}]` : kubernetesHost}:${kubernetesPort}`,
    serverName: null,
    authorities: await readFile(path.join(serviceAccountDir, 'ca.crt'), 'utf8'),
    insecure: false,
    certificate: null,
    token: (await readFile(tokenFile(serviceAccountDir), 'utf8')).trim(),
    isOperators: true,
  }));

const tokenFile = (folder: string): string => path.join(folder, 'token');

async function ofAccount<T>(folder: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    throw new RuntimeError(
      'refused',
      `The account of this process cannot be read in ${folder} (${(cause as NodeJS.ErrnoException).code}): let the pod mount the token of its service account, or PUT a kubeconfig.`,
      { cause },
    );
  }
}
