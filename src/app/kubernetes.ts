import { ConnectedClusters } from '#clusters/connected.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import type { Platform } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';

export { rbacManifest } from '#runtimes/kubernetes/rights.ts';

/** Creates the runtimes of Kubernetes clusters, each with its first use. */
export const kubernetesClusters = (platform: Platform, installation: string): ConnectedClusters =>
  new ConnectedClusters(platform, async (access, renewed) => {
    const { createKubernetesRuntime } = await import('#runtimes/kubernetes/index.ts');
    const { allowedPrivateAddresses } = platform.settings;
    const policy = createHttpClient({ allowedPrivateAddresses }).addressPolicy;
    const helm = platform.settings.helm || findProgram('helm');
    return createKubernetesRuntime({ installation, access, renewed, policy, helm });
  });
