import type pg from 'pg';
import type { Logger } from 'pino';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { createListener } from '#platform/database/notify.ts';
import { PROGRESS } from '#deployments/model/channels.ts';

/** Milliseconds between two looks at all awaited deployments, if nothing notifies of their ends. */
const LOOK_MS = 250;
/** Milliseconds between two looks if ends are notified: a message may be lost, and a deleted deployment sends none. */
const LISTENING_LOOK_MS = 2_000;

interface Waiter {
  organizationId: string;
  done(): void;
}

/** Watch for the ends of awaited deployments, with one statement for all of them. */
class EndWatch {
  readonly #db: Database;
  readonly #waiting = new Map<string, Set<Waiter>>();
  #isTold = false;
  #looking = false;
  #again = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** True if `moved` is called for ends from now on. */
  set isTold(told: boolean) {
    this.#isTold = told;
  }

  add(id: string, waiter: Waiter): () => void {
    const waiters = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiters.add(waiter));
    this.#nudge();
    return () => {
      waiters.delete(waiter);
      if (waiters.size === 0) this.#waiting.delete(id);
    };
  }

  /** Looks at the database if a caller waits for the deployment; an empty id stands for any deployment. */
  moved(id: string): void {
    if (id === '' || this.#waiting.has(id)) this.#nudge();
  }

  #nudge(): void {
    if (this.#looking) this.#again = true;
    else void this.#look();
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    this.#looking = true;
    do {
      this.#again = false;
      // Without an answer of the database nothing has ended: the next look asks again, and each caller's time runs out.
      const open = await this.#listOpen().catch(() => undefined);
      if (open) this.#tell(open.asked, open.open);
    } while (this.#again && this.#waiting.size > 0);
    this.#looking = false;
    if (this.#waiting.size > 0)
      this.#timer = setTimeout(() => this.#nudge(), this.#isTold ? LISTENING_LOOK_MS : LOOK_MS).unref();
  }

  async #listOpen(): Promise<{ asked: string[]; open: Set<string> }> {
    const asked = [...this.#waiting.keys()];
    const organizations = new Set(
      [...this.#waiting.values()].flatMap((all) => [...all].map((one) => one.organizationId)),
    );
    const rows = await this.#db
      .selectFrom('deployment')
      .select('id')
      .where('organization_id', '=', sql<string>`any(${[...organizations]})`)
      .where('id', '=', sql<string>`any(${asked})`)
      .where('status', '<>', 'ENDED')
      .execute();
    return { asked, open: new Set(rows.map((row) => row.id)) };
  }

  #tell(asked: string[], open: Set<string>): void {
    for (const id of asked) if (!open.has(id)) for (const { done } of this.#waiting.get(id) ?? []) done();
  }
}

const watches = new WeakMap<Database, EndWatch>();

function watchOf(db: Database): EndWatch {
  let watch = watches.get(db);
  if (!watch) watches.set(db, (watch = new EndWatch(db)));
  return watch;
}

/** Listens for ends of deployments, over one connection for the whole process. Returns the function that stops it. */
export function listenForEnds(db: Database, directConfig: pg.ClientConfig, log: Logger): () => Promise<void> {
  const watch = watchOf(db);
  watch.isTold = true;
  const listener = createListener(
    directConfig,
    [PROGRESS],
    (_channel, id) => watch.moved(id),
    (error) => log.warn({ err: error }, 'cannot listen for ends of deployments'),
  );
  return async () => {
    watch.isTold = false;
    await listener.close();
  };
}

/** Waits until a deployment has ended, or is gone with its environment, or the time is over (`?wait=`). Holds no connection meanwhile. */
export async function waitForEnd(
  db: Database,
  scope: Scope,
  deploymentId: string,
  seconds: number,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      forget();
      resolve();
    };
    const timer = setTimeout(done, seconds * 1000);
    signal.addEventListener('abort', done);
    const forget = watchOf(db).add(deploymentId, { organizationId: scope.organizationId, done });
  });
}
