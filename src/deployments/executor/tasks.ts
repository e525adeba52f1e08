import { newId } from '#kernel/ids.ts';
import { beginOfStep, endOfStep, type ExecutionEnd, type ExecutionEvent } from '#deployments/executions/queries.ts';
import { checkoutAll, repositoriesDirectory } from '#deployments/executor/checkouts.ts';
import { requireDiskOfCommand } from '#deployments/executor/disk.ts';
import { fenced } from '#deployments/executor/fenced-write.ts';
import type { Execution } from '#deployments/executor/engine.ts';
import { follow, goesOn } from '#deployments/executor/following.ts';
import { contextOf, isHandedOver } from '#deployments/executor/run-context.ts';
import type { ServiceWork, StepContext } from '#deployments/executor/service-work.ts';
import type { PlannedTask, TaskOutcome } from '#deployments/model/kind.ts';
import type { DeploymentAction } from '#deployments/model/states.ts';
import type { Runtime, TaskContext, TaskEnd } from '#runtimes/runtime.ts';

/** Record of a command that the step EXECUTING keeps: without its output, which may hold secrets. */
export interface TaskSummary {
  name: string;
  attempt: number;
  exitCode: number | null;
  reason: TaskEnd['reason'];
}

/**
 * Runs the commands of a step in order, each until it succeeds or its attempts are used up. The kind records their outcomes. An attempt
 * that an earlier worker began is adopted, never begun twice (docs/contributing/engine.md, *The queue*). Throws an error for people where a
 * command failed.
 */
export async function runTasks(work: ServiceWork, context: StepContext): Promise<{ tasks: TaskSummary[] }> {
  const { run, runtime } = work;
  if (!runtime.run) throw new Error(`The runtime ${runtime.name} cannot run jobs: use a cluster that can.`);
  const startedAt = new Date();
  const outcomes: TaskOutcome[] = [];
  await begin(work);
  let failure: string | null = null;
  try {
    for (const planned of work.tasks!) {
      if (failure !== null && !planned.always) continue;
      const one = { runtime, planned: withFolders(work, planned), outcomes };
      context.log(`Running ${planned.task.name}`);
      const why = await runOne(one, { ...context, prepare: () => prepare(work, planned, context) }, () => goesOn(run));
      if (why !== undefined && planned.tolerated)
        context.log(`${why} It is left at that: the teardown is best effort.`);
      else failure = why ?? failure;
    }
    context.signal.throwIfAborted();
  } catch (error) {
    if (isHandedOver(run)) throw error;
    // A cancel, a command that could not be begun, one that shows no progress: what was run is recorded all the same.
    await end(
      work,
      outcomes,
      run.signal.aborted ? 'CANCELED' : 'FAILED',
      run.signal.aborted ? null : work.mask((error as Error).message),
    );
    throw error;
  }
  const lines = await record(work, { startedAt, outcomes, failure: failure === null ? null : work.mask(failure) });
  for (const line of lines) context.log(line);
  if (failure !== null) throw new Error(failure);
  return {
    tasks: outcomes.map(({ name, attempt, end: { exitCode, reason } }) => ({ name, attempt, exitCode, reason })),
  };
}

/** Prepares a command that is about to begin. A command that an earlier worker began is adopted without it. */
async function prepare(work: ServiceWork, { checkout }: PlannedTask, context: StepContext): Promise<void> {
  await requireDiskOfCommand(work);
  if (checkout) await checkoutAll(work, checkout, context);
}

/** Returns the command with the folder for its repositories. */
function withFolders(work: ServiceWork, planned: PlannedTask): PlannedTask {
  const { checkout, task } = planned;
  if (!checkout) return planned;
  return { ...planned, task: { ...task, folders: [{ path: checkout.path, directory: repositoriesDirectory(work) }] } };
}

type Recorded = Pick<Execution, 'startedAt' | 'outcomes' | 'failure'>;

/** Lets the kind record the outcomes and writes the end of the execution, in one transaction. Returns lines for the log. */
async function record(work: ServiceWork, recorded: Recorded): Promise<string[]> {
  const { run, service } = work;
  const { outcomes, failure } = recorded;
  const execution: Execution = {
    organizationId: run.scope.organizationId,
    environmentId: run.snapshot.environmentId,
    deploymentId: run.claim.deployment.id,
    event: service.event,
    action: run.snapshot.action,
    ...recorded,
    commitId: run.resolution.services[service.serviceId]?.commit?.id ?? null,
    secrets: work.variables?.secrets ?? [],
  };
  try {
    return await fenced(run.db, run.claim, async (db) => {
      const lines = await run.parts.hooks[service.kind]?.record?.(contextOf(run, db), service, execution);
      await writeEnd(work, db, outcomes, failure === null ? 'SUCCEEDED' : 'FAILED', failure);
      return lines ?? [];
    });
  } catch (error) {
    if (isHandedOver(run)) throw error;
    await end(work, outcomes, 'FAILED', work.mask((error as Error).message));
    throw error;
  }
}

const EVENTS: Record<DeploymentAction, ExecutionEvent> = {
  DEPLOY: 'START',
  STOP: 'STOP',
  RESTART: 'START',
  DELETE: 'DELETE',
  UNINSTALL: 'DELETE',
  RUN: 'START',
};

async function begin(work: ServiceWork): Promise<void> {
  const { run, service, tasks } = work;
  const policy = run.parts.kinds[service.kind]!.executions?.(service);
  if (!policy) return;
  const names = tasks!.flatMap(({ task, attempts }) => attemptNames(task.name, attempts));
  const execution = {
    id: newId(),
    organization_id: run.scope.organizationId,
    environment_id: run.snapshot.environmentId,
    service_id: service.serviceId,
    deployment_id: run.claim.deployment.id,
    event: (service.event as ExecutionEvent | undefined) ?? EVENTS[run.snapshot.action],
    tasks: names,
  };
  await fenced(run.db, run.claim, (db) => beginOfStep(db, execution, policy));
}

const end = (work: ServiceWork, outcomes: TaskOutcome[], state: ExecutionEnd['state'], error: string | null) =>
  fenced(work.run.db, work.run.claim, (db) => writeEnd(work, db, outcomes, state, error));

async function writeEnd(
  { run, service }: ServiceWork,
  db: typeof run.db,
  outcomes: TaskOutcome[],
  state: ExecutionEnd['state'],
  error: string | null,
): Promise<void> {
  if (!run.parts.kinds[service.kind]!.executions) return;
  const step = { deploymentId: run.claim.deployment.id, serviceId: service.serviceId };
  await endOfStep(db, run.scope, step, { state, ...summaryOf(outcomes), error });
}

/** Returns the end of the last attempt and the number of attempts. */
export const summaryOf = (outcomes: TaskOutcome[]) => ({
  attempts: outcomes.length,
  end: outcomes.at(-1)?.end ?? null,
});

/** Returns the names of all attempts that a command may take. */
export const attemptNames = (name: string, attempts: number): string[] =>
  Array.from({ length: attempts }, (_, index) => `${name}-${index + 1}`);

/** Command to run, its runtime, and the outcomes of its attempts so far, to be added to. */
export interface OneTask {
  runtime: Runtime;
  planned: PlannedTask;
  outcomes: TaskOutcome[];
}

/** Runs a command until it succeeds or its attempts are used up. Returns the reason of its failure; undefined after a success. */
export async function runOne(
  { runtime, planned: { task, attempts, accepts = [] }, outcomes }: OneTask,
  context: TaskContext,
  mayGoOn: () => Promise<boolean>,
): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    const end = await follow(runtime, { ...task, name: `${task.name}-${attempt}` }, context, mayGoOn);
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
    return `${name} was begun and its end can't be known: the machine was restarted, or what was left of it was removed; the warnings of the service say whether its disk was the reason. Look what it did before running it again.`;
  return end.signal ? `${name} was ended by ${end.signal}.` : `${name} ended with status ${end.exitCode}.`;
}
