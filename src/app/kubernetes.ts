import { ConnectedClusters } from '#clusters/connected.ts';
import type { Base } from '#app/install.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { createDockerBuilder } from '#runtimes/docker/builder.ts';
import { createBuiltImages } from '#services/images/built-images.ts';
import { createPodLogs } from '#services/pod-logs/index.ts';

export { rbacManifest } from '#runtimes/kubernetes/rights.ts';

const NO_STATE_URL =
  'Pods of the cluster know no address of this service: set QUARTERDECK_TERRAFORM_STATE_URL to a URL that leads from them to QUARTERDECK_TERRAFORM_STATE_PORT of its workers, and start it again.';

/** Creates the runtimes of Kubernetes clusters, each with its first use. One engine builds for all of them. */
export function kubernetesClusters({
  platform,
  installation: { id: installation },
  nodeId,
}: Pick<Base, 'platform' | 'installation' | 'nodeId'>): ConnectedClusters {
  const { settings, log, vault } = platform;
  const builder = createDockerBuilder({ ...settings, installation, log: (line) => log.info(line) });
  return new ConnectedClusters(platform, async (clusterId, access, renewed) => {
    const { createKubernetesRuntime } = await import('#runtimes/kubernetes/index.ts');
    const policy = createHttpClient(settings).addressPolicy;
    const images = { builder, registries: createBuiltImages(platform, { clusterId, nodeId }) };
    const recordKey = vault.deriveKey(`kubernetes-records/${clusterId}`);
    const { helm, terraformStateUrl } = settings;
    const unreachedBy = terraformStateUrl ? null : NO_STATE_URL;
    const own = { installation, recordKey, helm, unreachedBy, log: (line: string) => log.warn({ clusterId }, line) };
    const formerLogs = createPodLogs(platform, clusterId);
    return createKubernetesRuntime({ ...own, access, renewed, policy, images, formerLogs });
  });
}
