import type { RuntimeContext, TaskContext, TaskEnd, TaskSpec, WorkloadIdentity } from '#runtimes/runtime.ts';
import { MAX_OUTPUT_BYTES, outputTooLarge } from '#runtimes/tools/task-output.ts';
import { wait } from '#runtimes/fake/faults.ts';
import type { FaultPlan } from '#runtimes/fake/faults.ts';
import { outcomeOf } from '#runtimes/fake/outcome.ts';
import type { FakeOutcome } from '#runtimes/fake/outcome.ts';
import { taskKey } from '#runtimes/fake/store.ts';
import type { FakeScript, FakeStore, FakeTask } from '#runtimes/fake/store.ts';

/** Chooses the outcome of an execution; `run` throws its errors, as if the command could not begin. */
export type DecideOutcome = (spec: TaskSpec) => FakeOutcome | Promise<FakeOutcome>;

/** Milliseconds between two checks whether an execution was ended or removed meanwhile. */
const LOOK_MS = 10;
/** Number of specs kept for inspection: a control plane on the fake runtime runs for weeks. */
const KEPT_SPECS = 1000;

type TaskIdentity = Pick<WorkloadIdentity, 'serviceId'>;

/**
 * Pretended executions. The outcome is fixed and stored at the beginning, so that a successor, also in another process, derives the
 * progress from the clock.
 */
export class FakeTasks {
  readonly #store: FakeStore;
  readonly #plan: FaultPlan;
  readonly #deciders = new Map<string, DecideOutcome>();
  /** Executions that this object is beginning now, by key. */
  readonly #beginning = new Map<string, Promise<FakeTask>>();
  readonly #begun: TaskSpec[] = [];

  constructor(store: FakeStore, plan: FaultPlan) {
    this.#store = store;
    this.#plan = plan;
  }

  /** Sets the outcome of future executions of a service, by its id or `*` for all others (null restores the default). */
  on(serviceId: string, decide: DecideOutcome | null): void {
    if (decide) this.#deciders.set(serviceId, decide);
    else this.#deciders.delete(serviceId);
  }

  /** Returns the specs of a service's executions in the order of their beginning: stored ones, and removed ones begun here. */
  specsOf(serviceId: string): TaskSpec[] {
    const own = this.#begun.filter(({ identity }) => identity.serviceId === serviceId);
    const known = new Set(own.map(taskKey));
    const kept = this.#store.tasks(serviceId).map(({ spec }) => spec);
    return [...kept.filter((spec) => !known.has(taskKey(spec))), ...own];
  }

  async run(spec: TaskSpec, context: TaskContext): Promise<TaskEnd> {
    const present = this.#find(spec);
    if (present) context.log(`${nameOf(spec)} is there already: it is taken over.`);
    const task = present ?? (await this.#begin(spec, context));
    const end = await this.#follow(task, context);
    if (end.output !== null && Buffer.byteLength(end.output) > MAX_OUTPUT_BYTES)
      throw outputTooLarge(spec.outputPath!, Buffer.byteLength(end.output));
    return end;
  }

  remove({ serviceId }: TaskIdentity, names: string[]): void {
    for (const { spec } of this.#store.tasks(serviceId))
      if (names.includes(spec.name)) this.#store.deleteTask(serviceId, taskKey(spec));
  }

  #find(spec: TaskSpec): FakeTask | null {
    return this.#store.readTask(spec.identity.serviceId, taskKey(spec));
  }

  #begin(spec: TaskSpec, context: TaskContext): Promise<FakeTask> {
    const key = `${spec.identity.serviceId}/${taskKey(spec)}`;
    const beginning = this.#beginning.get(key) ?? this.#beginNew(spec, context);
    this.#beginning.set(key, beginning);
    return beginning.finally(() => this.#beginning.delete(key));
  }

  async #beginNew(spec: TaskSpec, { signal, prepare }: TaskContext): Promise<FakeTask> {
    await prepare?.();
    const { serviceId } = spec.identity;
    const decide = this.#deciders.get(serviceId) ?? this.#deciders.get('*');
    const ordered = this.#plan.faults.outcomes?.[serviceId] ?? this.#plan.faults.outcomes?.['*'];
    const script = await outcomeOf(spec, this.#store, decide ? await decide(spec) : ordered);
    const task: FakeTask = { spec, startedAt: new Date().toISOString(), script, end: null };
    this.#store.writeTask(task);
    this.#begun.push(spec);
    if (this.#begun.length > 2 * KEPT_SPECS) this.#begun.splice(0, KEPT_SPECS);
    await this.#plan.enter('begun', spec.identity, signal);
    return task;
  }

  /** Logs the output as its time comes, and returns the end. */
  async #follow({ spec, script, startedAt }: FakeTask, context: RuntimeContext): Promise<TaskEnd> {
    let told = 0;
    for (;;) {
      const task = this.#find(spec);
      if (!task) return lostSince(startedAt);
      const end = task.end ?? endOf(task);
      const lived = (end ? Date.parse(end.endedAt) : Date.now()) - Date.parse(startedAt);
      for (let line = script.lines[told]; line && line.afterMs <= lived; line = script.lines[++told])
        context.log(line.text);
      if (end) {
        this.#store.writeTask({ ...task, end });
        return end;
      }
      await wait(LOOK_MS, context.signal).catch((error: unknown) => {
        if (this.#find(spec)) this.#store.writeTask({ ...task, end: terminated(task, 'exited', Date.now()) });
        throw error;
      });
    }
  }
}

/** End of an execution that was removed before its end was known. */
const lostSince = (startedAt: string): TaskEnd => {
  return { reason: 'lost', exitCode: null, signal: null, startedAt, endedAt: new Date().toISOString(), output: null };
};

const nameOf = ({ displayName, name }: TaskSpec): string => `${displayName} (${name})`;

/** Returns the end of an execution if it has come by now, else null. */
function endOf(task: FakeTask): TaskEnd | null {
  const { script, spec } = task;
  const began = Date.parse(task.startedAt);
  const own = began + (script.takesMs ?? Infinity);
  const latest = began + spec.timeoutSeconds * 1000;
  if (Math.min(own, latest) > Date.now()) return null;
  if (latest < own) return terminated(task, 'timeout', latest);
  return ended(task, script.reason, script, own);
}

const terminated = (task: FakeTask, reason: TaskEnd['reason'], at: number): TaskEnd =>
  ended(task, reason, { exitCode: null, signal: 'SIGTERM' }, at);

function ended(
  { spec, script, startedAt }: FakeTask,
  reason: TaskEnd['reason'],
  { exitCode, signal }: Pick<FakeScript, 'exitCode' | 'signal'>,
  at: number,
): TaskEnd {
  const isGood = reason === 'exited' && exitCode === 0;
  const output = isGood && spec.outputPath !== null ? script.output : null;
  return { reason, exitCode, signal, startedAt, endedAt: new Date(at).toISOString(), output };
}
