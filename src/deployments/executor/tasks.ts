import { fenced } from '#deployments/executor/fenced-write.ts';
import type { Execution } from '#deployments/executor/engine.ts';
import { contextOf } from '#deployments/executor/run-context.ts';
import type { ServiceWork, StepContext } from '#deployments/executor/service-work.ts';
import type { PlannedTask, TaskOutcome } from '#deployments/model/kind.ts';
import type { TaskEnd } from '#runtimes/runtime.ts';

/** What the step EXECUTING keeps of its commands: no output, which may hold secrets. */
export interface TaskSummary {
  name: string;
  attempt: number;
  exitCode: number | null;
  reason: TaskEnd['reason'];
}

/**
 * Runs the commands of a step in order, each until it comes to a good end or its attempts are used up, and has what they left recorded. An
 * attempt that an earlier worker began is adopted, never begun twice (engine.md, *The queue*). Throws what came to no good end.
 */
export async function runTasks(work: ServiceWork, context: StepContext): Promise<{ tasks: TaskSummary[] }> {
  const { run, runtime, service } = work;
  if (!runtime.run) throw new Error(`The runtime ${runtime.name} cannot run jobs: use a cluster that can.`);
  const startedAt = new Date();
  const outcomes: TaskOutcome[] = [];
  let failure: string | null = null;
  for (const planned of work.tasks!) {
    if (failure !== null && !planned.always) continue;
    failure = (await runOne(work, planned, outcomes, context)) ?? failure;
  }
  context.signal.throwIfAborted();
  const execution: Execution = {
    organizationId: run.scope.organizationId,
    environmentId: run.snapshot.environmentId,
    deploymentId: run.claim.deployment.id,
    event: service.event,
    action: run.snapshot.action,
    startedAt,
    outcomes,
    failure: failure === null ? null : work.mask(failure),
    commitId: run.resolution.services[service.serviceId]?.commit?.id ?? null,
    secrets: work.variables?.secrets ?? [],
  };
  const lines = await fenced(run.db, run.claim, async (db) =>
    run.parts.hooks[service.kind]?.record?.(contextOf(run, db), service, execution),
  );
  for (const line of lines ?? []) context.log(line);
  if (failure !== null) throw new Error(failure);
  return {
    tasks: outcomes.map(({ name, attempt, end: { exitCode, reason } }) => ({ name, attempt, exitCode, reason })),
  };
}

/** Answers why a command came to no good end, undefined where it did. */
async function runOne(
  work: ServiceWork,
  { task, attempts, accepts = [] }: PlannedTask,
  outcomes: TaskOutcome[],
  context: StepContext,
): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    const end = await work.runtime.run!({ ...task, name: `${task.name}-${attempt}` }, context);
    outcomes.push({ name: task.name, attempt, end });
    if (end.reason === 'exited' && end.exitCode !== null && [0, ...accepts].includes(end.exitCode)) return undefined;
    const why = whyFailed(task.name, end, task.timeoutSeconds);
    // Whether a lost one did its work can't be known: it is never run twice.
    if (attempt >= attempts || end.reason === 'lost') return why;
    context.log(`${why} Attempt ${attempt + 1} of ${attempts} begins.`);
  }
}

function whyFailed(name: string, end: TaskEnd, timeoutSeconds: number): string {
  if (end.reason === 'timeout') return `${name} took longer than ${timeoutSeconds} seconds and was ended.`;
  if (end.reason === 'lost')
    return `${name} was begun and its end can't be known: the machine was restarted. Look what it did before running it again.`;
  return end.signal ? `${name} was ended by ${end.signal}.` : `${name} ended with status ${end.exitCode}.`;
}
