import { createHash } from 'node:crypto';
import { cancelled, RuntimeError } from '#runtimes/runtime.ts';
import type { RuntimeContext, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';
import { wait } from '#runtimes/fake/faults.ts';
import type { FakeCandidate, FakeService, FakeStore } from '#runtimes/fake/store.ts';
import { identify, readBootId } from '#runtimes/tools/shim/identity.ts';

/** Behaviour of a large cluster: it takes specs over at once and rolls them out by itself, each in a time of its own. */
export interface FakeCluster {
  /** The same seed gives every release the same times and the same fate. */
  seed: number;
  /** Milliseconds that a rollout takes, from and to. */
  rolloutMs: [number, number];
  /** Share of releases, from 0 to 1, that never become ready. */
  failures?: number;
}

/** Milliseconds between two looks at a rollout: another process may take it back. */
const LOOK_MS = 10;

/** Rollouts of a fake cluster. They are stored, so that any process can follow them. */
export class FakeRollouts {
  readonly #store: FakeStore;
  readonly #cluster: FakeCluster;
  readonly #self = identify(process.pid, readBootId())!;

  constructor(store: FakeStore, cluster: FakeCluster) {
    this.#store = store;
    this.#cluster = cluster;
  }

  /** Begins a rollout; one of the same generation that is under way goes on. */
  begin(spec: WorkloadSpec, restartedFor?: number): void {
    const { serviceId, generation } = spec.identity;
    const present = this.#store.read(serviceId);
    const running = present?.candidate;
    if (running?.spec.identity.generation === generation && running.restartedFor === restartedFor) return;
    const [from, to] = this.#cluster.rolloutMs;
    const key = `${serviceId} ${generation} ${restartedFor ?? ''}`;
    const fails = this.#draw(`fate ${key}`) < (this.#cluster.failures ?? 0);
    const candidate: FakeCandidate = {
      spec,
      readyAt: new Date(Date.now() + from + this.#draw(`time ${key}`) * (to - from)).toISOString(),
      problem: fails ? 'its instances end again and again (CrashLoopBackOff)' : null,
      restartedFor,
    };
    this.#store.write({ ...(present ?? this.#placeholder(spec)), candidate });
  }

  /**
   * Waits for a rollout and returns its candidate when it is over; null if it is over already. Throws `superseded` and `failed` if it was
   * replaced or removed. Aborted, it takes the candidate back.
   */
  async follow({ serviceId, generation }: WorkloadIdentity, { signal, log }: RuntimeContext) {
    log('Waiting for the cluster to roll it out.');
    for (;;) {
      const service = this.#store.read(serviceId);
      if (!service) throw new RuntimeError('failed', 'The service was removed while it was being rolled out.');
      const candidate = service.candidate;
      const newest = (candidate ?? service).spec.identity.generation;
      if (newest > generation)
        throw new RuntimeError('superseded', `Generation ${newest} is there, ${generation} came too late.`);
      if (!candidate) return null;
      const left = Date.parse(candidate.readyAt) - Date.now();
      if (left <= 0) return candidate;
      await wait(Math.min(left, LOOK_MS), signal).catch((error: unknown) => {
        this.takeBack(candidate);
        throw signal.aborted ? cancelled(signal.reason) : error;
      });
    }
  }

  /** Forgets a candidate, unless another one has taken its place; the release before it stays. */
  takeBack({ spec }: FakeCandidate): void {
    const { serviceId, generation } = spec.identity;
    const service = this.#store.read(serviceId);
    if (service?.candidate?.spec.identity.generation !== generation) return;
    const { candidate: _candidate, ...before } = service;
    if (before.spec.identity.generation === generation && before.instances.length === 0) this.#store.delete(serviceId);
    else this.#store.write(before);
  }

  /** Returns the state of a service that nothing was rolled out of yet. */
  #placeholder(spec: WorkloadSpec): FakeService {
    return { spec, stopped: true, instances: [], owner: this.#self };
  }

  /** Returns a number from 0 to 1 that depends on the seed and on the key alone. */
  #draw(key: string): number {
    const digest = createHash('sha256').update(`${this.#cluster.seed} ${key}`).digest();
    return digest.readUInt32BE(0) / 2 ** 32;
  }
}
