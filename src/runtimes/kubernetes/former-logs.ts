import { setTimeout as sleep } from 'node:timers/promises';
import { isId } from '#kernel/ids.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import type { FormerLogStore } from '#runtimes/former-log-store.ts';
import type { LogLine } from '#runtimes/runtime.ts';
import { LastLines } from '#runtimes/tools/log-limits.ts';
import { packLog } from '#runtimes/tools/packed-log.ts';
import type { Cluster } from './cluster.ts';
import type { Pod } from './kinds.ts';
import { LABEL, namespaceOf } from './labels.ts';
import { linesOfPod } from './logs.ts';
import { containerOf, generationOf } from './pods.ts';

/** Limits of the lines and characters that are kept of one pod: the newest stay. */
const MOST = { lines: 20_000, characters: 2 * 2 ** 20 };
/** Pods that are followed to their end at a time. The logs of others are read as they are, so that none is gone before its turn. */
const FOLLOWED = 24;
/** Pods among those others that are read at a time. */
const READ_AT_ONCE = 8;
/** Pods that are remembered as read, so that each of their changes does not begin again. */
const REMEMBERED = 10_000;
/** Longest time in seconds that a pod may take to end. What it writes later is not kept. */
const LONGEST_GRACE = 300;
/** Seconds after that in which its log must be complete. */
const AFTER_GRACE = 30;
/** Attempts to read a log, and milliseconds between them: the pod is there for moments only. */
const ATTEMPTS = 3;
const PAUSE_MS = 500;

type Query = Record<string, boolean>;

/**
 * Keeps the logs of pods that end, as their cluster deletes them with the pod. A log is followed from the moment at which the pod is told to
 * end, so that its last lines are in it. A pod that is deleted without time to end leaves nothing.
 */
export class FormerPods {
  readonly #cluster: Cluster;
  readonly #store: FormerLogStore;
  readonly #tell: (line: string) => void;
  readonly #seen = new Set<string>();
  readonly #followed = new Set<Promise<void>>();
  readonly #read = new Set<Promise<void>>();
  readonly #waiting: Pod[] = [];
  readonly #closed = new AbortController();

  constructor(cluster: Cluster, store: FormerLogStore, tell: (line: string) => void) {
    this.#cluster = cluster;
    this.#store = store;
    this.#tell = tell;
  }

  /** Looks at a pod as the cluster tells it: one that ends is read beside whatever else is done. */
  see(pod: Pod): void {
    const { uid } = pod.metadata;
    if (uid === undefined || !isEnding(pod) || !isOfService(pod) || this.#seen.has(uid)) return;
    if (this.#seen.size >= REMEMBERED) this.#seen.clear();
    this.#seen.add(uid);
    if (this.#followed.size < FOLLOWED) return this.#begin(pod, this.#followed);
    this.#waiting.push(pod);
    this.#readNext();
  }

  /** Ends the reading; what was read so far is kept, and the next process that follows the cluster reads those pods again. */
  async close(): Promise<void> {
    this.#waiting.length = 0;
    this.#closed.abort();
    await Promise.all([...this.#followed, ...this.#read]);
  }

  #readNext(): void {
    while (this.#read.size < READ_AT_ONCE && this.#waiting.length > 0) this.#begin(this.#waiting.shift()!, this.#read);
  }

  #begin(pod: Pod, among: Set<Promise<void>>): void {
    const reading = this.#keep(pod, among === this.#followed)
      .catch((error: unknown) => {
        this.#seen.delete(pod.metadata.uid!);
        this.#tell(`The log of the pod ${pod.metadata.name} is not kept: ${(error as Error).message}`);
      })
      .finally(() => {
        among.delete(reading);
        this.#readNext();
      });
    among.add(reading);
  }

  async #keep(pod: Pod, follow: boolean): Promise<void> {
    const { name, uid, labels } = pod.metadata;
    const lines = await this.#linesOf(pod, follow);
    if (lines.length === 0) return;
    const serviceId = labels![LABEL.service]!;
    const { state } = containerOf(pod) ?? {};
    const begun = state?.running?.startedAt ?? state?.terminated?.startedAt;
    const lastRunFrom = begun === undefined ? null : new Date(begun).toISOString();
    const ended = pod.metadata.deletionTimestamp ? undefined : state?.terminated?.finishedAt;
    const endedAt = ended === undefined ? new Date() : new Date(ended);
    const environmentId = labels![LABEL.environment]!;
    const content = await packLog({ generation: generationOf(pod), lastRunFrom }, lines);
    await this.#store.keep({ serviceId, environmentId, name, key: uid!, endedAt }, content);
  }

  /** Returns the last lines of a pod, those of the run before included; with `follow` once its program has ended. */
  async #linesOf(pod: Pod, follow: boolean): Promise<LogLine[]> {
    const grace = Math.min(pod.metadata.deletionGracePeriodSeconds ?? 0, LONGEST_GRACE);
    const signal = anySignal([this.#closed.signal, AbortSignal.timeout((grace + AFTER_GRACE) * 1000)]);
    let most: LogLine[] = [];
    for (let attempt = 1; ; attempt++) {
      const last = new LastLines<LogLine>(MOST);
      let failure: unknown;
      try {
        await this.#add(queriesOf(pod, follow), pod, last, signal);
      } catch (error) {
        failure = error;
      }
      if (last.lines.length > most.length) most = last.lines;
      if (failure === undefined || signal.aborted) return most;
      if (attempt === ATTEMPTS && most.length > 0) return most;
      if (attempt === ATTEMPTS) throw failure;
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #add(queries: Query[], pod: Pod, last: LastLines<LogLine>, signal: AbortSignal): Promise<void> {
    for (const query of queries)
      for await (const line of linesOfPod(this.#cluster, pod, { tailLines: MOST.lines, ...query }, signal))
        last.add(line);
  }
}

const isEnding = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp !== undefined || status?.phase === 'Failed';

/** Returns whether a pod is an instance of a service in its environment: runs of jobs have their own logs. */
function isOfService({ metadata: { labels = {}, namespace } }: Pod): boolean {
  const { [LABEL.service]: serviceId, [LABEL.environment]: environmentId, [LABEL.task]: task } = labels;
  if (serviceId === undefined || environmentId === undefined || task !== undefined) return false;
  return isId(serviceId) && isId(environmentId) && namespace === namespaceOf({ environmentId });
}

/** Returns what is asked for the log of a pod: where its container waits to be started again, the last run is the one before. */
function queriesOf(pod: Pod, follow: boolean): Query[] {
  const { state, restartCount = 0 } = containerOf(pod) ?? {};
  const hasBefore = restartCount > 0 && !state?.waiting;
  return [...(hasBefore ? [{ previous: true }] : []), { follow }];
}
