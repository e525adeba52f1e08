import { RuntimeError, type RuntimeContext } from '#runtimes/runtime.ts';
import { pathOf, type Cluster } from './cluster.ts';
import type { ClusterEvent, Job, List, Pod } from './kinds.ts';
import { containerOf, troubleOf } from './pods.ts';
import { START_SECONDS } from './task-objects.ts';
import { endTask } from './task-stop.ts';

/** Milliseconds after which a reason is told again, as a sign of life. */
const AGAIN_MS = 60_000;
/** Milliseconds in which an image must be pulled once pulling has failed: registries fail for a moment. */
const PULL_MS = 120_000;
/** Milliseconds that a cluster may take to make the pod of a Job before its events are read. */
const POD_MS = 2000;
/** Events of a Job that are read. */
const EVENTS = 50;

/** Watches a command that has not started: tells why not, and gives it up in the end. */
export class StartWatch {
  readonly #cluster: Cluster;
  readonly #context: RuntimeContext;
  readonly #since: number;
  readonly #told = new Map<string, number>();
  #failedPull: number | null = null;

  constructor(cluster: Cluster, { status }: Job, context: RuntimeContext) {
    this.#cluster = cluster;
    this.#context = context;
    this.#since = status?.startTime ? Date.parse(status.startTime) : Date.now();
  }

  /** Tells why the command has not started. Throws RuntimeError `failed` once it is given up. */
  async look(job: Job, pod: Pod | null): Promise<void> {
    const why = pod ? troubleOf(pod) : await this.#whyNoPod(job);
    if (why !== null) this.#tell(why);
    if (!this.#isHopeless(pod)) return;
    await endTask(this.#cluster, job, pod, 'start');
    throw new RuntimeError('failed', `The command could not be started: ${why ?? 'the cluster gives no reason'}.`);
  }

  #tell(why: string): void {
    const last = this.#told.get(why);
    if (last !== undefined && Date.now() - last < AGAIN_MS) return;
    this.#told.set(why, Date.now());
    this.#context.log(`It has not started: ${why}.`);
  }

  #isHopeless(pod: Pod | null): boolean {
    const reason = pod && containerOf(pod)?.state?.waiting?.reason;
    if (reason === 'InvalidImageName') return true;
    if (reason === 'ErrImagePull' || reason === 'ImagePullBackOff') this.#failedPull ??= Date.now();
    if (this.#failedPull !== null && Date.now() - this.#failedPull > PULL_MS) return true;
    return Date.now() - this.#since > START_SECONDS * 1000;
  }

  /** Returns why a Job has no pod, as its events say (a quota, a rule of the cluster); null if there is nothing to tell. */
  async #whyNoPod({ metadata }: Job): Promise<string | null> {
    if (Date.now() - this.#since < POD_MS) return null;
    const { items } = await this.#cluster.connection.get<List<ClusterEvent>>(pathOf('Event', metadata.namespace), {
      query: { fieldSelector: `involvedObject.uid=${metadata.uid}`, limit: EVENTS },
    });
    const warning = items.findLast(({ type }) => type === 'Warning');
    return warning ? `the cluster makes no pod: ${warning.message ?? warning.reason ?? 'it gives no reason'}` : null;
  }
}
