import { ConnectedClusters } from '#clusters/connected.ts';
import type { Platform } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';

export { rbacManifest } from '#runtimes/kubernetes/rights.ts';

/** Creates the runtimes of Kubernetes clusters, each with its first use. */
export const kubernetesClusters = (platform: Platform, installation: string): ConnectedClusters =>
  new ConnectedClusters(platform, async (access, renewed) => {
    const { createKubernetesRuntime } = await import('#runtimes/kubernetes/index.ts');
    const { allowedPrivateAddresses } = platform.settings;
    const policy = createHttpClient({ allowedPrivateAddresses }).addressPolicy;
    return createKubernetesRuntime({ installation, access, renewed, policy, helm: platform.settings.helm });
  });
