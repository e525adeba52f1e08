import { systemContext } from '#platform/context.ts';
import { Deadline, UNWIND_SECONDS } from '#deployments/executor/deadline.ts';
import { generationOf, type EngineParts } from '#deployments/executor/engine.ts';
import { attemptNames, runOne, summaryOf } from '#deployments/executor/tasks.ts';
import type { ClaimedExecution } from '#deployments/executions/claims.ts';
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
import type { Runtime } from '#runtimes/runtime.ts';

export type ExecutionParts = Pick<
  EngineParts,
  | 'platform'
  | 'nodeId'
  | 'installation'
  | 'kinds'
  | 'runtimeOf'
  | 'checkPlace'
  | 'sourcesFor'
  | 'hooks'
  | 'expand'
  | 'makeMask'
>;

/** Why an execution's work is ended from outside. */
export type ExecutionStop = 'give-back' | 'lost' | 'replaced' | 'stopped';

/** Pickups in a row after which an execution is given up: each ended its worker before it was followed for `STEADY_MS`. */
const MAX_PICKUPS = 5;
const STEADY_MS = 3_000;
const FLUSH_MS = 500;
const MARGIN_SECONDS = 120;

const CANCELLED: Partial<Record<ExecutionStop, string>> = {
  replaced: 'The next run was due and replaced it.',
  stopped: 'The job was stopped or removed while it ran.',
};

/** What is run, and where. */
interface Prepared {
  runtime: Runtime;
  planned: PlannedTask;
  mask: Mask;
}

/**
 * Carries a claimed execution to its end, from wherever an earlier worker left it. Every failure ends in a state that people see; it throws only
 * where this worker must not go on.
 */
export async function runExecution(
  parts: ExecutionParts,
  claim: ClaimedExecution,
  abort: AbortController,
): Promise<void> {
  if (claim.pickups > MAX_PICKUPS) return giveUp(parts, claim);
  const outcomes: TaskOutcome[] = [];
  const log = new LogWriter(parts, claim, abort);
  let mask: Mask = (text) => text;
  let result: Pick<ExecutionEnd, 'state' | 'error'>;
  try {
    await beginLog(parts.platform.db, claim);
    const prepared = await prepare(parts, claim, abort.signal);
    mask = prepared.mask;
    const failure = await run(parts, claim, { ...prepared, outcomes, log }, abort.signal);
    result = {
      state: failure === undefined ? 'SUCCEEDED' : 'FAILED',
      error: failure === undefined ? null : mask(failure),
    };
  } catch (error) {
    const reason = abort.signal.aborted ? (abort.signal.reason as ExecutionStop) : undefined;
    if (reason === 'give-back' || reason === 'lost') {
      log.close();
      throw error;
    }
    const cancelled = reason && CANCELLED[reason];
    result = cancelled
      ? { state: 'CANCELED', error: cancelled }
      : { state: 'FAILED', error: mask((error as Error).message) };
  }
  await log.flush();
  await end(parts.platform.db, claim, { ...result, ...summaryOf(outcomes) });
}

/** Ends what still runs of it, and only then the execution: the next one must not begin beside it. Throws where that can't be done now. */
async function giveUp(parts: ExecutionParts, claim: ClaimedExecution): Promise<void> {
  const runtime = await parts.runtimeOf({ id: claim.cluster_id, runtime: claim.runtime });
  const identity = {
    installation: parts.installation.id,
    organizationId: claim.organization_id,
    projectId: claim.project_id,
    environmentId: claim.environment_id,
    serviceId: claim.service_id,
  };
  if (claim.tasks.length > 0) await runtime.removeTasks?.(identity, claim.tasks);
  const error = `Given up after ${MAX_PICKUPS} attempts to go on with it.`;
  await end(parts.platform.db, claim, { state: 'FAILED', error, ...summaryOf([]) });
}

/** The command of the release, with its variables as they were released and their values as they are now. */
async function prepare(parts: ExecutionParts, claim: ClaimedExecution, signal: AbortSignal): Promise<Prepared> {
  const { platform, kinds, installation } = parts;
  const { organization_id: organizationId, environment_id: environmentId } = claim;
  const release = await findRelease(platform.db, claim);
  await parts.checkPlace(organizationId, claim.cluster_id);
  const runtime = await parts.runtimeOf({ id: claim.cluster_id, runtime: claim.runtime });
  if (!runtime.run) throw new Error(`The runtime ${runtime.name} cannot run jobs: use a cluster that can.`);
  const service: ServiceSnapshot = { ...release.snapshot, event: 'CRON' };
  const kind = kinds[service.kind]!;
  const identity = {
    installation: installation.id,
    organizationId,
    projectId: claim.project_id,
    environmentId,
    serviceId: claim.service_id,
    generation: generationOf(installation.epoch, release.number),
  };
  const context = systemContext(platform);
  const { deployment_id: id, shared } = release;
  const deployment = { id, environmentId, shared, isRollback: false, signal };
  const expanded = await parts.expand(context, organizationId, service, deployment);
  const opened = await parts.hooks[service.kind]?.open?.(context, service, identity);
  const variables = { ...expanded, secrets: [...new Set([...expanded.secrets, ...(opened?.secrets ?? [])])] };
  const registryId = release.resolution.imageSource?.registryId;
  const options = {
    proxyDomain: platform.settings.proxyDomain,
    outputPath: outputPathOf(platform.settings.builtInVariablePrefix),
    registry: registryId ? await parts.sourcesFor(claim.runtime).registryAccess(organizationId, registryId) : null,
    opened: opened?.values ?? {},
    bestEffort: false,
  };
  const [planned] = kind.tasks!(service, 'RUN', identity, release.image, variables, options);
  // Of one release there are many executions: each is known by its own id.
  const name = `cron-${claim.id.replaceAll('-', '').slice(0, 20)}`;
  return {
    runtime,
    planned: { ...planned!, task: { ...planned!.task, name } },
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
  const refusals = runtime.refusals(task);
  if (refusals.length > 0) throw new Error(refusals.join(' '));
  await addTasks(parts.platform.db, claim, attemptNames(task.name, attempts));
  const deadline = new Deadline(signal, {
    seconds: task.timeoutSeconds + task.gracePeriodSeconds + MARGIN_SECONDS,
    patience: () => UNWIND_SECONDS + task.gracePeriodSeconds,
  });
  const context = {
    signal: deadline.signal,
    log: (line: string) => {
      if (!deadline.holds()) return;
      deadline.touch();
      log.write(mask(line));
    },
  };
  const steady = setTimeout(() => {
    forgetPickups(parts.platform.db, claim).catch((error: unknown) =>
      parts.platform.log.warn({ err: error, executionId: claim.id }, 'cannot record that an execution is followed'),
    );
  }, STEADY_MS);
  const goesOn = async () =>
    signal.reason === 'give-back' || (signal.reason === 'lost' && (await isHeldByOther(parts.platform.db, claim)));
  try {
    return await deadline.race(runOne({ runtime, planned, outcomes }, context, goesOn));
  } finally {
    clearTimeout(steady);
    deadline.close();
  }
}

/** Stores what an execution writes, soon enough to be followed. Where that can't be, the work is left to another worker. */
class LogWriter {
  readonly #parts: ExecutionParts;
  readonly #claim: ClaimedExecution;
  readonly #abort: AbortController;
  readonly #log = new ExecutionLog();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: ExecutionParts, claim: ClaimedExecution, abort: AbortController) {
    this.#parts = parts;
    this.#claim = claim;
    this.#abort = abort;
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
        .catch(() => this.#abort.abort('lost' satisfies ExecutionStop));
    return this.#writing;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
