import type { Platform } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { connectionVersion, openConnection } from '#resources/cluster/index.ts';
export { rbacManifest } from '#runtimes/kubernetes/rights.ts';
import { RuntimeError, type ClusterRef, type Runtime } from '#runtimes/runtime.ts';

interface Opened {
  version: string;
  runtime: Promise<Runtime>;
}

/** Runtimes of Kubernetes clusters, one for each. A runtime is made anew when the kubeconfig of its cluster is replaced. */
export class KubernetesRuntimes {
  readonly #platform: Platform;
  readonly #installation: string;
  readonly #opened = new Map<string, Opened>();

  constructor(platform: Platform, installation: string) {
    this.#platform = platform;
    this.#installation = installation;
  }

  async runtimeOf({ id }: ClusterRef): Promise<Runtime> {
    const version = id === null ? null : await connectionVersion(this.#platform.db, id);
    if (id === null || version === null)
      throw new RuntimeError('refused', 'The Kubernetes cluster has no kubeconfig: PUT one, then deploy the cluster.');
    const present = this.#opened.get(id);
    if (present?.version === version) return present.runtime;
    const runtime = this.#open(id);
    const opened = { version, runtime };
    this.#opened.set(id, opened);
    // A failed one is tried again on the next call.
    runtime.catch(() => this.#opened.get(id) === opened && this.#opened.delete(id));
    // What is under way goes on with the credentials that it began with, and ends in time.
    void present?.runtime.then(
      (old) => old.close(),
      () => undefined,
    );
    return runtime;
  }

  async close(): Promise<void> {
    const all = [...this.#opened.values()];
    this.#opened.clear();
    await Promise.all(
      all.map(({ runtime }) =>
        runtime.then(
          (ready) => ready.close(),
          () => undefined,
        ),
      ),
    );
  }

  async #open(id: string): Promise<Runtime> {
    const access = await openConnection(this.#platform, id);
    if (!access) throw new RuntimeError('refused', 'The cluster is gone.');
    const { allowedPrivateAddresses } = this.#platform.settings;
    const policy = createHttpClient({ allowedPrivateAddresses }).addressPolicy;
    const { createKubernetesRuntime } = await import('#runtimes/kubernetes/index.ts');
    return createKubernetesRuntime({ installation: this.#installation, access, policy });
  }
}
