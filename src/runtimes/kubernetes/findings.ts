import type { Cluster } from './cluster.ts';
import type { Connection } from './connection.ts';

/** Milliseconds for which findings are used again. */
const FRESH_MS = 30_000;

/** Findings of clusters, by a name in each. A failure is told to whoever asked, and is not kept for the next. */
export class Findings<T> {
  readonly #look: (cluster: Cluster, name: string) => Promise<T>;
  readonly #known = new WeakMap<Connection, Map<string, { at: number; found: Promise<T> }>>();

  constructor(look: (cluster: Cluster, name: string) => Promise<T>) {
    this.#look = look;
  }

  /** Returns what was found within the last 30 seconds. */
  recent(cluster: Cluster, name = ''): Promise<T> {
    const present = this.#known.get(cluster.connection)?.get(name);
    return present && Date.now() - present.at < FRESH_MS ? present.found : this.fresh(cluster, name);
  }

  /** Looks now. */
  fresh(cluster: Cluster, name = ''): Promise<T> {
    const { connection } = cluster;
    const known = this.#known.get(connection) ?? new Map<string, { at: number; found: Promise<T> }>();
    this.#known.set(connection, known);
    const found = this.#look(cluster, name);
    known.set(name, { at: Date.now(), found });
    found.catch(() => known.delete(name));
    return found;
  }

  /** Looks anew the next time. */
  forget({ connection }: Cluster, name = ''): void {
    this.#known.get(connection)?.delete(name);
  }
}
