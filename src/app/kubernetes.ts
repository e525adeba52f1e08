import type { Platform } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { connectionVersion, openConnection } from '#resources/cluster/index.ts';
export { rbacManifest } from '#runtimes/kubernetes/rights.ts';
import type { KubernetesRuntime } from '#runtimes/kubernetes/index.ts';
import { RuntimeError, type ClusterRef, type Runtime } from '#runtimes/runtime.ts';
import { KeyedLock } from '#runtimes/tools/keyed-lock.ts';

type Access = NonNullable<Awaited<ReturnType<typeof openConnection>>>;

interface Opened {
  version: string;
  runtime: KubernetesRuntime;
}

/** Runtimes of Kubernetes clusters, one for each. */
export class KubernetesRuntimes {
  readonly #platform: Platform;
  readonly #installation: string;
  readonly #opened = new Map<string, Opened>();
  readonly #opening = new KeyedLock();

  constructor(platform: Platform, installation: string) {
    this.#platform = platform;
    this.#installation = installation;
  }

  /** Returns the runtime of a cluster, which goes on with the new kubeconfig once that is replaced. Throws RuntimeError without one. */
  runtimeOf({ id }: ClusterRef): Promise<Runtime> {
    return this.#opening.run(id ?? '', async () => {
      const version = id === null ? null : await connectionVersion(this.#platform.db, id);
      if (id === null || version === null)
        throw new RuntimeError(
          'refused',
          'The Kubernetes cluster has no kubeconfig: PUT one, then deploy the cluster.',
        );
      const present = this.#opened.get(id);
      if (present?.version === version) return present.runtime;
      const access = await openConnection(this.#platform, id);
      if (!access) throw new RuntimeError('refused', 'The Kubernetes cluster is gone.');
      if (present) present.runtime.use(access);
      const runtime = present?.runtime ?? (await this.#open(id, access));
      this.#opened.set(id, { version, runtime });
      return runtime;
    });
  }

  async close(): Promise<void> {
    const all = [...this.#opened.values()];
    this.#opened.clear();
    await Promise.all(all.map(({ runtime }) => runtime.close()));
  }

  async #open(id: string, access: Access): Promise<KubernetesRuntime> {
    const { allowedPrivateAddresses } = this.#platform.settings;
    const policy = createHttpClient({ allowedPrivateAddresses }).addressPolicy;
    const { createKubernetesRuntime } = await import('#runtimes/kubernetes/index.ts');
    const renewed = () => openConnection(this.#platform, id);
    return createKubernetesRuntime({ installation: this.#installation, access, policy, renewed });
  }
}
