import { isId } from '#kernel/ids.ts';
import type { Platform } from '#platform/context.ts';
import type { ClusterRef, Runtime } from '#runtimes/runtime.ts';

/** Milliseconds in which changes are gathered, and until another look at a service that a request is under way for. */
const GATHER_MS = 200;
const LATER_MS = 1_000;

interface FollowerParts {
  platform: Platform;
  /** Returns the runtime of a cluster in time. */
  open(cluster: ClusterRef & { id: string }): Promise<Runtime>;
  /** Looks at services of followed clusters. Returns those to look at again a moment later. */
  look(clusterIds: string[], serviceIds: string[]): Promise<string[]>;
}

/** Follows clusters whose runtimes can be watched, and has services looked at that have changed there. */
export class ClusterFollower {
  readonly #parts: FollowerParts;
  /** Ends of the watches, by cluster. */
  readonly #followed = new Map<string, () => void>();
  /** Services that have changed since they were looked at. */
  readonly #changed = new Set<string>();
  #gathering: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #stopped = false;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  has(clusterId: string): boolean {
    return this.#followed.has(clusterId);
  }

  /** Follows those of the clusters that can be followed, and no others. */
  async follow(clusters: (ClusterRef & { id: string })[]): Promise<void> {
    for (const [id, leave] of this.#followed)
      if (!clusters.some((cluster) => cluster.id === id)) {
        leave();
        this.#followed.delete(id);
      }
    const starts = clusters.filter(({ id }) => !this.has(id)).map((cluster) => this.#start(cluster));
    for (const start of await Promise.allSettled(starts))
      if (start.status === 'rejected') this.#parts.platform.log.warn({ err: start.reason }, 'cannot follow a cluster');
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#gathering);
    for (const leave of this.#followed.values()) leave();
    this.#followed.clear();
    await this.#looking;
  }

  async #start({ id, runtime: name }: ClusterRef & { id: string }): Promise<void> {
    const { log } = this.#parts.platform;
    const runtime = await this.#parts.open({ id, runtime: name });
    if (!runtime.watch || this.#stopped) return;
    const turned = (reason: string | null) =>
      reason === null
        ? log.info({ clusterId: id }, 'the cluster is followed')
        : log.warn({ clusterId: id }, `the cluster is not followed, only looked at: ${reason}`);
    this.#followed.set(id, runtime.watch({ changed: (serviceId) => this.#wake(serviceId, GATHER_MS), turned }));
  }

  #wake(serviceId: string, ms: number): void {
    // Labels in a cluster can be anything.
    if (!isId(serviceId)) return;
    this.#changed.add(serviceId);
    if (this.#looking || this.#stopped) return;
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      const ids = [...this.#changed];
      this.#changed.clear();
      this.#looking = this.#look(ids)
        .catch((error: unknown) =>
          this.#parts.platform.log.warn({ err: error }, 'cannot look at services that have changed'),
        )
        .finally(() => {
          this.#looking = undefined;
          for (const id of this.#changed) this.#wake(id, GATHER_MS);
        });
    }, ms);
  }

  async #look(serviceIds: string[]): Promise<void> {
    const again = await this.#parts.look([...this.#followed.keys()], serviceIds);
    for (const id of again) setTimeout(() => this.#wake(id, 0), LATER_MS).unref();
  }
}
