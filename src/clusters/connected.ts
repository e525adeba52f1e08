import type { Platform } from '#platform/context.ts';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import { connectionVersion, openConnection } from '#resources/cluster/index.ts';
import { RuntimeError, type ClusterAccess, type ClusterRef, type Runtime } from '#runtimes/runtime.ts';

/** Runtime of one cluster, reached over a connection. */
export interface ConnectedRuntime extends Runtime {
  /** Uses another address or other credentials from the next call on. */
  use(access: ClusterAccess): void;
}

/** Makes the runtime of the cluster with an id; `renewed` returns the connection as it is now, null if the cluster is gone. */
type Make = (
  id: string,
  access: ClusterAccess,
  renewed: () => Promise<ClusterAccess | null>,
) => Promise<ConnectedRuntime>;

/** Runtimes of clusters that have a connection of their own, one for each. */
export class ConnectedClusters {
  readonly #platform: Platform;
  readonly #make: Make;
  readonly #opened = new Map<string, { version: string; runtime: ConnectedRuntime }>();
  readonly #opening = new KeyedLock();

  constructor(platform: Platform, make: Make) {
    this.#platform = platform;
    this.#make = make;
  }

  /** Returns the runtime of a cluster, which goes on with the new kubeconfig once that is replaced. Throws RuntimeError without one. */
  runtimeOf({ id }: ClusterRef): Promise<Runtime> {
    return this.#opening.run(id ?? '', async () => {
      const version = id === null ? null : await connectionVersion(this.#platform.db, id);
      if (id === null || version === null)
        throw new RuntimeError('refused', 'The cluster has no kubeconfig: PUT one, then deploy the cluster.');
      const present = this.#opened.get(id);
      if (present?.version === version) return present.runtime;
      const renewed = () => openConnection(this.#platform, id);
      const access = await renewed();
      if (!access) throw new RuntimeError('refused', 'The cluster is gone.');
      present?.runtime.use(access);
      const runtime = present?.runtime ?? (await this.#make(id, access, renewed));
      this.#opened.set(id, { version, runtime });
      return runtime;
    });
  }

  async close(): Promise<void> {
    const all = [...this.#opened.values()];
    this.#opened.clear();
    await Promise.all(all.map(({ runtime }) => runtime.close()));
  }
}
