import { ConnectedClusters } from '#clusters/connected.ts';
import type { Base } from '#app/install.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { createDockerBuilder } from '#runtimes/docker/builder.ts';
import { createBuiltImages } from '#services/images/built-images.ts';

export { rbacManifest } from '#runtimes/kubernetes/rights.ts';

/** Creates the runtimes of Kubernetes clusters, each with its first use. One engine builds for all of them. */
export function kubernetesClusters({ platform, installation: { id: installation }, nodeId }: Base): ConnectedClusters {
  const { settings, log } = platform;
  const builder = createDockerBuilder({ ...settings, installation, log: (line) => log.info(line) });
  return new ConnectedClusters(platform, async (clusterId, access, renewed) => {
    const { createKubernetesRuntime } = await import('#runtimes/kubernetes/index.ts');
    const policy = createHttpClient(settings).addressPolicy;
    const images = { builder, registries: createBuiltImages(platform, { clusterId, nodeId }) };
    return createKubernetesRuntime({ installation, access, renewed, policy, images, helm: settings.helm });
  });
}
