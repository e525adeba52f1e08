import type { Run } from '#deployments/executor/run-context.ts';
import type { Runtime, TaskContext, TaskEnd, TaskSpec } from '#runtimes/runtime.ts';

/** Error that leaves work outside to itself: the worker that takes over follows it. */
class LeftRunning extends Error {
  constructor() {
    super('The work was left to go on by itself: another worker follows it.');
    this.name = 'LeftRunning';
  }
}

/** Work outside that ends when its signal is aborted, and that goes on without being followed. */
interface Outside<T> {
  begin(context: { signal: AbortSignal; log(line: string): void }): Promise<T>;
  log(line: string): void;
}

/**
 * Follows work outside to its end, while the signal is not aborted. Then `mayGoOn` says whether it is left to itself for a successor (throws
 * LeftRunning), or is ended (throws what it throws). A runtime ends what it does when its own signal is aborted; a worker that stops or has
 * lost its claim must not, since its successor may follow the same work already.
 */
export async function followOutside<T>(
  signal: AbortSignal,
  { begin, log }: Outside<T>,
  mayGoOn: () => Promise<boolean>,
): Promise<T> {
  const ending = new AbortController();
  const left = Promise.withResolvers<never>();
  let isLeft = false;
  const leave = async () => {
    if (!(await mayGoOn())) return ending.abort(signal.reason);
    isLeft = true;
    left.reject(new LeftRunning());
  };
  // Aborted between the beginning of the work and this call: it is left or ended like later.
  if (signal.aborted) await leave();
  if (isLeft) return left.promise;
  const onAbort = () => void leave();
  signal.addEventListener('abort', onAbort, { once: true });
  const running = begin({ signal: ending.signal, log: (line) => isLeft || log(line) });
  // Nobody awaits work that is left to itself: its rejection is swallowed here.
  running.catch(() => undefined);
  try {
    return await Promise.race([running, left.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Runs a command and follows it to its end, or leaves it to a successor (`followOutside`). */
export async function follow(
  runtime: Runtime,
  task: TaskSpec,
  { signal, log, prepare }: TaskContext,
  mayGoOn: () => Promise<boolean>,
): Promise<TaskEnd> {
  // What has not begun does not begin.
  signal.throwIfAborted();
  let refusal: unknown;
  const prepareOrRefuse = async () => {
    await prepare?.().catch((error: unknown) => {
      refusal = error;
      throw error;
    });
  };
  const begin: Outside<TaskEnd>['begin'] = (context) => runtime.run!(task, { ...context, prepare: prepareOrRefuse });
  try {
    return await followOutside(signal, { begin, log }, mayGoOn);
  } catch (error) {
    // Runtimes report an error of the preparation as one of their own.
    throw refusal ?? error;
  }
}

/** Returns whether a command goes on when its attempt is ended: unless it was cancelled, also by force, or took too long. */
export async function goesOn({ signal, db, claim }: Run): Promise<boolean> {
  if (signal.reason === 'give-back') return true;
  if (signal.reason !== 'lost') return false;
  try {
    const row = await db
      .selectFrom('deployment')
      .select('status')
      .where('organization_id', '=', claim.deployment.organization_id)
      .where('id', '=', claim.deployment.id)
      .executeTakeFirst();
    // A claim that is lost because the deployment is over was cancelled by force.
    return row !== undefined && row.status !== 'ENDED';
  } catch {
    // Without the database a successor may follow the command, and ending it can't be undone.
    return true;
  }
}
