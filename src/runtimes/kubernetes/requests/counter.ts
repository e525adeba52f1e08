import { randomUUID } from 'node:crypto';
import { emptyTally, type Tally } from '#runtimes/tools/tally.ts';
import type { GatewayRequests, Handle } from '#runtimes/runtime.ts';
import type { Cluster } from '../cluster.ts';
import type { Pod } from '../kinds.ts';
import { namesOfBackends } from './backends.ts';
import { findControllers } from './controllers.ts';
import type { GatewayProgram } from './gateway-program.ts';
import { listGatewayPods, READ_MS, readGatewayPod } from './gateway-pods.ts';
import { addTally, tallyOf, type Reading } from './totals.ts';
import { programsOf } from './programs.ts';

/** Milliseconds after which a look is too old to count on from it: one minute would get the requests of hours. */
const STALE_MS = 180_000;
/** Milliseconds by which the clocks of cluster and control plane may differ. */
const SKEW_MS = 60_000;
/** Pods that are read at a time. */
const AT_ONCE = 4;

/** Counters of all pods of gateways at a time. */
interface Look {
  id: string;
  /** Milliseconds since 1970. */
  at: number;
  /** Last reading of each pod, by the pod's uid; null for a pod that has not been read yet. */
  pods: Map<string, Reading | null>;
}

/** Counts the requests of one cluster's services by the metrics of its gateway. */
export class RequestCounter {
  readonly #cluster: Cluster;
  #last: Look | null = null;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Counts since a look (`Runtime.requests`). */
  async count(handles: Handle[], since: string | null, signal: AbortSignal): Promise<GatewayRequests | null> {
    const controllers = await findControllers(this.#cluster);
    const look: Look = { id: randomUUID(), at: Date.now(), pods: new Map() };
    const last = this.#last;
    const age = look.at - (last?.at ?? 0);
    const from = last !== null && last.id === since && age >= 0 && age < STALE_MS ? last : null;
    const tallies = new Map<string, Tally>();
    const problems: string[] = [];
    let isCounted = false;
    for (const program of programsOf(controllers)) {
      const names = await namesOfBackends(this.#cluster, program, handles, controllers);
      const pods = await listGatewayPods(this.#cluster, program);
      isCounted ||= pods.length > 0;
      if (pods.length > 0) for (const id of names.keys()) tallies.set(id, tallies.get(id) ?? emptyTally());
      problems.push(...(await this.#readAll(program, pods, names, { look, from, tallies, signal })));
    }
    if (!isCounted) return null;
    this.#last = look;
    const services = [...tallies].map(([serviceId, tally]) => ({ serviceId, ...tally }));
    return { look: look.id, counts: from && { seconds: age / 1000, services }, problems };
  }

  /** Adds what the pods have counted; returns the reasons for which some were not read. What these counted is added by the next look. */
  async #readAll(
    program: GatewayProgram,
    pods: Pod[],
    names: Map<string, string[]>,
    {
      look,
      from,
      tallies,
      signal,
    }: { look: Look; from: Look | null; tallies: Map<string, Tally>; signal: AbortSignal },
  ): Promise<string[]> {
    const wanted = new Set([...names.values()].flat());
    const left = pods.values();
    const problems: unknown[] = [];
    const work = async () => {
      for (const pod of left) {
        const uid = pod.metadata.uid!;
        const before = from?.pods.get(uid) ?? null;
        try {
          const reading = await readGatewayPod(this.#cluster, program, pod, wanted, { signal, ms: READ_MS });
          look.pods.set(uid, reading);
          if (from === null || (before === null && !isNewSince(pod, from))) continue;
          for (const [id, known] of names) addTally(tallies.get(id)!, tallyOf(known, reading, before));
        } catch (error) {
          signal.throwIfAborted();
          look.pods.set(uid, before);
          problems.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (problems.length > 0 && problems.length === pods.length) throw problems[0];
    return problems.map((error) => (error as Error).message);
  }
}

/** Returns whether a pod was started after a look: all that it has counted is new. */
const isNewSince = ({ metadata }: Pod, { at, pods }: Look): boolean =>
  !pods.has(metadata.uid!) && Date.parse(metadata.creationTimestamp ?? '') > at - SKEW_MS;
