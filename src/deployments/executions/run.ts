import { systemContext } from '#platform/context.ts';
import { Abandoned, UNWIND_SECONDS, withDeadline } from '#kernel/deadline.ts';
import { generationOf, type EngineParts } from '#deployments/executor/engine.ts';
import { attemptNames, runOne, summaryOf } from '#deployments/executor/tasks.ts';
import type { ClaimedExecution, ExecutionReason } from '#deployments/executions/claims.ts';
import { ExecutionLog } from '#deployments/executions/log.ts';
import type { ExecutionEnd } from '#deployments/executions/queries.ts';
import {
  addTasks,
  beginLog,
  end,
  findRelease,
  forgetPickups,
  isHeldByOther,
  storeChunk,
} from '#deployments/executions/writes.ts';
import type { PlannedTask, TaskOutcome } from '#deployments/model/kind.ts';
import { outputPathOf } from '#deployments/model/output-path.ts';
import type { ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { Mask } from '#deployments/logs/writer.ts';
import type { Lease, StopReason } from '#platform/work/index.ts';
import { isDatabaseAway } from '#platform/database/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';

export type ExecutionParts = Pick<
  EngineParts,
  | 'platform'
  | 'nodeId'
  | 'installation'
  | 'kinds'
  | 'runtimes'
  | 'checkPlace'
  | 'checkDisk'
  | 'sourcesFor'
  | 'hooks'
  | 'expand'
  | 'makeMask'
>;

/**
 * Number of pickups in a row after which an execution is given up: none of its workers followed it for as long as a step may take without
 * progress.
 */
export const MAX_PICKUPS = 5;
const REMOVAL_SECONDS = 60;
const FLUSH_MS = 500;
const MARGIN_SECONDS = 120;

const CANCELLED: Partial<Record<StopReason<ExecutionReason>, string>> = {
  replaced: 'The next run was due and replaced it.',
  stopped: 'The job was stopped or removed while it ran.',
};

/** Execution that is ready to run: its runtime, its command and the mask for its output. */
interface Prepared {
  runtime: Runtime;
  planned: PlannedTask;
  mask: Mask;
}

/**
 * Carries a claimed execution to its end, from wherever an earlier worker left it. Every failure ends in a state that people see. Throws
 * only where this worker must not go on, or where it is unknown whether the command still runs: the execution stays RUNNING for the next
 * pickup.
 */
export async function runExecution(
  parts: ExecutionParts,
  claim: ClaimedExecution,
  lease: Lease<ExecutionReason>,
): Promise<void> {
  const { signal } = lease;
  const outcomes: TaskOutcome[] = [];
  const log = new LogWriter(parts, claim, lease);
  let prepared: Prepared | undefined;
  let result: Pick<ExecutionEnd, 'state' | 'error'>;
  await beginLog(parts.platform.db, claim);
  try {
    prepared = await prepareInTime(parts, claim, signal);
    const failure = await run(parts, claim, { ...prepared, outcomes, log }, signal);
    result = {
      state: failure === undefined ? 'SUCCEEDED' : 'FAILED',
      error: failure === undefined ? null : prepared.mask(failure),
    };
  } catch (error) {
    const { reason } = lease;
    const isUnknown = isDatabaseAway(error) || (prepared && error instanceof Abandoned);
    if (reason === 'give-back' || reason === 'lost' || isUnknown) {
      log.close();
      throw error;
    }
    // An earlier worker may have begun the command, which no worker has followed since.
    if (!prepared) await removeLeft(parts, claim, signal);
    const mask = prepared?.mask ?? ((text: string) => text);
    const cancelled = reason && CANCELLED[reason];
    result = cancelled
      ? { state: 'CANCELED', error: cancelled }
      : { state: 'FAILED', error: mask((error as Error).message) };
  }
  await log.flush();
  await end(parts.platform.db, claim, { ...result, ...summaryOf(outcomes) });
}

/** Gives an execution up, after ending what still runs of it: the next one must not begin beside it. Throws if that can't be done now. */
export async function giveUp(
  parts: ExecutionParts,
  claim: ClaimedExecution,
  { signal }: Pick<Lease, 'signal'>,
): Promise<void> {
  await removeLeft(parts, claim, signal);
  const error = `Given up after ${MAX_PICKUPS} attempts to go on with it.`;
  await end(parts.platform.db, claim, { state: 'FAILED', error, ...summaryOf([]) });
}

/** Returns the seconds that a runtime has to remove what is left of an execution. */
export const removalSeconds = ({ platform }: Pick<ExecutionParts, 'platform'>): number =>
  Math.min(REMOVAL_SECONDS, platform.settings.stepProgressSeconds);

/** Removes from the runtime what earlier workers began of an execution. */
async function removeLeft(parts: ExecutionParts, claim: ClaimedExecution, signal: AbortSignal): Promise<void> {
  if (claim.tasks.length === 0) return;
  const identity = {
    installation: parts.installation.id,
    organizationId: claim.organization_id,
    projectId: claim.project_id,
    environmentId: claim.environment_id,
    serviceId: claim.service_id,
  };
  const seconds = removalSeconds(parts);
  const late = (cause: unknown) => new Error(`The runtime did not answer within ${seconds} seconds.`, { cause });
  // A removal hears of no signal: it is waited for longer only where it began late.
  const patience = () => (signal.aborted ? UNWIND_SECONDS : 0);
  await withDeadline(signal, { seconds, patience, late }, async () => {
    const runtime = await parts.runtimes.runtimeOf({ id: claim.cluster_id, runtime: claim.runtime });
    await runtime.removeTasks?.(identity, claim.tasks);
  });
}

/** Prepares under a deadline: runtimes, secret managers and registries may hang. */
function prepareInTime(parts: ExecutionParts, claim: ClaimedExecution, outer: AbortSignal): Promise<Prepared> {
  const seconds = parts.platform.settings.stepProgressSeconds;
  const late = (cause: unknown) => new Error(`What it needs was not there within ${seconds} seconds.`, { cause });
  return withDeadline(outer, { seconds, patience: () => UNWIND_SECONDS, late }, ({ signal }) =>
    prepare(parts, claim, signal),
  );
}

/** Prepares the command of the release, with its variables as they were released and their values as they are now. */
async function prepare(parts: ExecutionParts, claim: ClaimedExecution, signal: AbortSignal): Promise<Prepared> {
  const { platform, kinds, installation } = parts;
  const { organization_id: organizationId, environment_id: environmentId } = claim;
  const release = await findRelease(platform.db, claim);
  await parts.checkPlace(organizationId, claim.cluster_id);
  const runtime = await parts.runtimes.runtimeOf({ id: claim.cluster_id, runtime: claim.runtime });
  if (!runtime.run) throw new Error(`The runtime ${runtime.name} cannot run jobs: use a cluster that can.`);
  const service: ServiceSnapshot = { ...release.snapshot, event: 'CRON' };
  const kind = kinds[service.kind]!;
  const identity = {
    installation: installation.id,
    organizationId,
    projectId: claim.project_id,
    environmentId,
    serviceId: claim.service_id,
    generation: generationOf(claim.epoch, release.number),
  };
  const context = systemContext(platform);
  const { deployment_id: id, shared } = release;
  const deployment = { id, environmentId, isFork: claim.is_fork, shared, isRollback: false, signal };
  const expanded = await parts.expand(context, organizationId, service, deployment);
  const opened = await parts.hooks[service.kind]?.open?.(context, service, identity);
  const variables = { ...expanded, secrets: [...new Set([...expanded.secrets, ...(opened?.secrets ?? [])])] };
  const registryId = release.resolution.imageSource?.registryId;
  const built = await runtime.registryOf?.(identity, release.image, signal);
  const accessTo = async (id: string | undefined) =>
    id === undefined ? null : parts.sourcesFor(claim.runtime).registryAccess(organizationId, id);
  const options = {
    proxyDomain: platform.settings.proxyDomain,
    outputPath: outputPathOf(platform.settings.builtInVariablePrefix),
    registry: built === undefined ? await accessTo(registryId) : built,
    opened: opened?.values ?? {},
    bestEffort: false,
    fetched: null,
  };
  const [planned] = kind.tasks!(service, 'RUN', identity, release.image, variables, options);
  // Of one release there are many executions: each is known by its own id.
  const name = `cron-${claim.id.replaceAll('-', '').slice(0, 20)}`;
  const task = { ...planned!.task, name };
  const refusals = runtime.refusals(task);
  if (refusals.length > 0) throw new Error(refusals.join(' '));
  return {
    runtime,
    planned: { ...planned!, task },
    mask: parts.makeMask(variables.secrets),
  };
}

async function run(
  parts: ExecutionParts,
  claim: ClaimedExecution,
  { runtime, planned, mask, outcomes, log }: Prepared & { outcomes: TaskOutcome[]; log: LogWriter },
  signal: AbortSignal,
): Promise<string | undefined> {
  const { task, attempts } = planned;
  await addTasks(parts.platform.db, claim, attemptNames(task.name, attempts));
  const seconds = task.timeoutSeconds + task.gracePeriodSeconds + MARGIN_SECONDS;
  const isLeft = (reason: unknown) => reason === 'lost' || reason === 'give-back';
  const patience = (reason: unknown) => UNWIND_SECONDS + (isLeft(reason) ? 0 : task.gracePeriodSeconds);
  // A command that did not come back may still run.
  const late = (cause: unknown) =>
    cause instanceof Abandoned
      ? cause
      : new Error(`${task.name} showed no progress for ${seconds} seconds and was ended.`, { cause });
  const steady = setTimeout(() => {
    forgetPickups(parts.platform.db, claim).catch((error: unknown) =>
      parts.platform.log.warn({ err: error, executionId: claim.id }, 'cannot record that an execution is followed'),
    );
  }, parts.platform.settings.stepProgressSeconds * 1000);
  const goesOn = async () =>
    signal.reason === 'give-back' || (signal.reason === 'lost' && (await isHeldByOther(parts.platform.db, claim)));
  try {
    return await withDeadline(signal, { seconds, patience, late }, (deadline) => {
      const context = {
        signal: deadline.signal,
        log: (line: string) => {
          if (!deadline.holds()) return;
          deadline.touch();
          log.write(mask(line));
        },
        prepare: () => parts.checkDisk(claim.organization_id),
      };
      return runOne({ runtime, planned, outcomes }, context, goesOn);
    });
  } finally {
    clearTimeout(steady);
  }
}

/** Writer of an execution's output, soon enough to be followed. If it can't store the output, the work is left to another worker. */
class LogWriter {
  readonly #parts: ExecutionParts;
  readonly #claim: ClaimedExecution;
  readonly #lease: Lease<ExecutionReason>;
  readonly #log = new ExecutionLog();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: ExecutionParts, claim: ClaimedExecution, lease: Lease<ExecutionReason>) {
    this.#parts = parts;
    this.#claim = claim;
    this.#lease = lease;
  }

  write(text: string): void {
    if (this.#log.write(text)) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
  }

  /** Resolves when everything up to now is stored, or can't be. */
  flush(): Promise<void> {
    this.close();
    const chunk = this.#log.take();
    if (chunk)
      this.#writing = this.#writing
        .then(() => storeChunk(this.#parts.platform.db, this.#claim, chunk))
        .catch(() => this.#lease.abort('lost'));
    return this.#writing;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
