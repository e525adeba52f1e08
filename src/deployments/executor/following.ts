import type { Run } from '#deployments/executor/run-context.ts';
import type { Runtime, TaskContext, TaskEnd, TaskSpec } from '#runtimes/runtime.ts';

/** Error that leaves a command running by itself: the worker that goes on with the work adopts it. */
class LeftRunning extends Error {
  constructor() {
    super('The command was left running for whoever goes on with it.');
    this.name = 'LeftRunning';
  }
}

/**
 * Runs a command and follows it to its end, while the signal is not aborted. Then `mayGoOn` says whether it is left running, unfollowed, for a
 * successor (throws LeftRunning), or is ended (throws what the runtime throws). A runtime ends what it runs when its own signal is aborted; a
 * worker that stops or has lost its claim must not, since its successor may follow the same command already.
 */
export async function follow(
  runtime: Runtime,
  task: TaskSpec,
  { signal, log, prepare }: TaskContext,
  mayGoOn: () => Promise<boolean>,
): Promise<TaskEnd> {
  signal.throwIfAborted();
  const ending = new AbortController();
  const left = Promise.withResolvers<never>();
  let isLeft = false;
  const leave = async () => {
    if (!(await mayGoOn())) return ending.abort(signal.reason);
    isLeft = true;
    left.reject(new LeftRunning());
  };
  const onAbort = () => void leave();
  signal.addEventListener('abort', onAbort, { once: true });
  let refusal: unknown;
  const prepareOrRefuse = async () => {
    await prepare?.().catch((error: unknown) => {
      refusal = error;
      throw error;
    });
  };
  const running = runtime.run!(task, {
    signal: ending.signal,
    log: (line) => isLeft || log(line),
    prepare: prepareOrRefuse,
  });
  // Nobody awaits a command that is left running: its rejection is swallowed here.
  running.catch(() => undefined);
  try {
    return await Promise.race([running, left.promise]);
  } catch (error) {
    // Runtimes report an error of the preparation as one of their own.
    throw refusal ?? error;
  } finally {
    signal.removeEventListener('abort', onAbort);
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
