import type { Cluster } from './cluster.ts';
import type { Pod } from './kinds.ts';
import { linesOfPod } from './logs.ts';

/** Seconds of overlap when reading resumes: both outputs are stamped by themselves, and a line may be written after a later one. */
const OVERLAP_SECONDS = 2;
/** Number of told lines that are known by their time. */
const WINDOW = 2000;

/** Reports each line of a pod exactly once, from the beginning, however often reading breaks off. */
export class TaskLog {
  readonly #cluster: Cluster;
  readonly #onLine: (text: string) => void;
  /** Number of told lines by their time in nanoseconds, for the last ones. */
  readonly #told = new Map<string, number>();
  #last = '';

  constructor(cluster: Cluster, onLine: (text: string) => void) {
    this.#cluster = cluster;
    this.#onLine = onLine;
  }

  /** Reads new lines to the end of the log; with `follow` until the container ends or the cluster breaks off. */
  async read(pod: Pod, follow: boolean, signal: AbortSignal): Promise<void> {
    const known = new Map(this.#told);
    const oldest = [...known.keys()].reduce((first, stamp) => (stamp < first ? stamp : first), this.#last);
    for await (const { stamp, text } of linesOfPod(this.#cluster, pod, { follow, ...this.#since() }, signal)) {
      const left = known.get(stamp) ?? 0;
      known.set(stamp, left - 1);
      if (left > 0 || stamp < oldest) continue;
      this.#remember(stamp);
      this.#onLine(text);
    }
  }

  /** The cluster counts whole seconds. */
  #since(): Record<string, string> {
    if (this.#last === '') return {};
    const from = new Date(Date.parse(`${this.#last.slice(0, 19)}Z`) - OVERLAP_SECONDS * 1000);
    return { sinceTime: `${from.toISOString().slice(0, 19)}Z` };
  }

  #remember(stamp: string): void {
    this.#told.set(stamp, (this.#told.get(stamp) ?? 0) + 1);
    if (stamp > this.#last) this.#last = stamp;
    if (this.#told.size > WINDOW) this.#told.delete(this.#told.keys().next().value!);
  }
}
