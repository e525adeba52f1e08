import type { RawBuilder } from 'kysely';
import { newId } from '#kernel/ids.ts';
import { systemContext } from '#platform/context.ts';
import { DatabaseAway } from '#deployments/executor/claims.ts';
import { ClaimLost } from '#platform/work/index.ts';
import {
  deleteService,
  forgetImages,
  insertRelease,
  keepService,
  markUnknown,
  markWanted,
  recordHandle,
  type NewestCommit,
} from '#deployments/executor/facts.ts';
import { discardsOf, discardTasks } from '#deployments/executor/discard.ts';
import type { FencedWrite } from '#deployments/executor/fenced-write.ts';
import { Abandoned, Deadline, UNWIND_SECONDS, withDeadline } from '#kernel/deadline.ts';
import { keepLastLines, maskLines } from '#deployments/logs/failed-instance.ts';
import { diagnose, SEARCHED_LINES } from '#deployments/causes/index.ts';
import { codeOf, type Cause, type ServiceError } from '#deployments/model/errors.ts';
import {
  addMove,
  addRecap,
  isHandedOver,
  sendWithLog,
  writeOf,
  type PlannedRun,
} from '#deployments/executor/run-context.ts';
import { beginStep, endStep, failStep, passStep, stepKey, type StepPlace } from '#deployments/executor/step-log.ts';
import type { ServiceWork } from '#deployments/executor/service-work.ts';
import { STEPS, type Step } from '#deployments/executor/steps.ts';
import type { PlannedService } from '#deployments/model/snapshot.ts';
import { RuntimeError, type Deployable } from '#runtimes/runtime.ts';

/** Seconds on top of a workload's time to get ready, before a step that applies it counts as stuck. */
const APPLY_MARGIN_SECONDS = 120;

/** Seconds for taking a chart back that was cancelled, without waiting until the release before is ready. */
const CHART_UNWIND_SECONDS = 90;

/** Log line of a repeated step: an earlier attempt may have done all its work, and its output may be lost. */
const INTERRUPTED = 'An earlier attempt was interrupted here: what it has left undone is done now.';

/** Write that goes out with the next step's beginning, and the step that is under way. */
interface Position {
  write: FencedWrite;
  place: StepPlace | undefined;
  /** Phase that this attempt has moved the service to. */
  phase: Step['phase'] | undefined;
}

/**
 * Carries out a service's steps in order and returns whether all succeeded. The results of a step are written together with the beginning
 * of the next: a crash in between repeats a step, and every step can be repeated. Throws only where this attempt must write no more.
 */
export async function runService(run: PlannedRun, planned: PlannedService): Promise<boolean> {
  const work = begin(run, planned);
  const before = run.ended.get(planned.serviceId);
  if (before !== undefined) {
    // The attempt that wrote the end may have stopped before it removed what its commands left.
    await discardTasks(work, discardsOf(work));
    return before;
  }
  const at: Position = { write: writeOf(run), place: undefined, phase: undefined };
  if (planned.failure) {
    await fail(work, at, new Error(planned.failure.message));
    return false;
  }
  try {
    for (const [position, name] of planned.steps.entries()) {
      const place = { claim: run.claim, serviceId: planned.serviceId, position, name };
      const done = run.steps.get(stepKey(place));
      if (done?.status === 'SUCCESS') STEPS[name].take?.(work, done.output);
      else await carryOut(work, STEPS[name], place, at);
    }
    const moved = addEnd(work, at.write);
    const isLast = run.unended === 1;
    if (isLast) addRecap(run, at.write, moved);
    const { rows } = await sendWithLog(run, at.write);
    await discardTasks(work, discardsOf(work, work.tasks ?? []));
    if (isLast) run.recap = rows;
    return true;
  } catch (error) {
    await fail(work, at, error as Error);
    return false;
  } finally {
    for (const leave of Object.values(work.leave)) leave();
  }
}

function begin(run: PlannedRun, planned: PlannedService): ServiceWork {
  const service = run.snapshot.services.find((candidate) => candidate.serviceId === planned.serviceId)!;
  return {
    run,
    runtime: run.runtime!,
    planned,
    service,
    facts: run.facts.get(planned.serviceId),
    variables: undefined,
    mask: (text) => text,
    output: [],
    image: planned.image,
    opened: {},
    deployable: undefined,
    fetched: undefined,
    tasks: undefined,
    handle: null,
    domains: undefined,
    leave: {},
  };
}

async function carryOut(work: ServiceWork, step: Step, place: StepPlace, at: Position): Promise<void> {
  const { run, service } = work;
  run.signal.throwIfAborted();
  at.place = place;
  work.output = [];
  if (step.passes?.(work)) return pass(work, place, at);
  await step.await?.(work);
  await prepare(work, step, place);
  at.write.add(beginStep(run.db, place));
  // A service that is in its phase already is moved by nothing.
  if (at.phase !== step.phase) addMove(run, at.write, step.phase, { serviceIds: [service.serviceId] });
  at.phase = step.phase;
  if (step.applies && run.snapshot.action === 'DEPLOY')
    at.write.add(markWanted(run.db, run.scope, service.serviceId, 'running'));
  const { write } = at;
  at.write = writeOf(run);
  await sendWithLog(run, write);
  run.signal.throwIfAborted();
  if (run.steps.has(stepKey(place)))
    run.log.write({ serviceId: service.serviceId, step: place.name, text: INTERRUPTED });

  const span = run.span.child(place.name, { 'quarterdeck.service.id': service.serviceId });
  const deadline = new Deadline(run.signal, {
    seconds: progressSeconds(work, step),
    patience: (reason) => unwindSeconds(work, reason),
  });
  try {
    const output = await deadline.race(
      step.run(work, {
        signal: deadline.signal,
        attempt: { number: run.claim.deployment.attempt_number, holds: () => deadline.holds() },
        log: (text) => {
          if (!deadline.holds()) return;
          deadline.touch();
          const masked = work.mask(text);
          work.output = [...work.output, ...masked.split('\n')].slice(-SEARCHED_LINES);
          run.log.write({ serviceId: service.serviceId, step: place.name, text: masked });
        },
      }),
    );
    step.take?.(work, output);
    at.write.add(endStep(run.db, place, output));
    finish(work, at);
    span.set({ 'quarterdeck.outcome': 'SUCCESS' });
  } catch (error) {
    span.set({ 'quarterdeck.outcome': run.signal.aborted ? 'CANCEL' : 'ERROR' });
    if (!run.signal.aborted) span.fail((error as Error).name);
    if (!deadline.isOver) throw error;
    throw new Error(`${place.name} showed no progress for ${progressSeconds(work, step)} seconds and was ended.`, {
      cause: error,
    });
  } finally {
    deadline.close();
    span.end();
  }
}

/** Ends a step that had nothing to wait for. Its record goes out with the next step's beginning. */
function pass(work: ServiceWork, place: StepPlace, at: Position): void {
  const { run, service } = work;
  const span = run.span.child(place.name, { 'quarterdeck.service.id': service.serviceId });
  at.write.addToldBehind(passStep(run.db, place));
  finish(work, at);
  span.set({ 'quarterdeck.outcome': 'SUCCESS' });
  span.end();
}

/** Leaves a step that was finished: the count of fruitless pickups begins anew. */
function finish({ run }: ServiceWork, at: Position): void {
  if (run.claim.deployment.attempts > 1) at.write.set({ attempts: 1 });
  at.place = undefined;
}

/** Prepares a step under a deadline: secret managers, for example, may hang. */
function prepare(work: ServiceWork, step: Step, place: StepPlace): Promise<void> {
  const seconds = work.run.parts.platform.settings.stepProgressSeconds;
  const late = (cause: unknown) =>
    new Error(`What ${place.name} needs was not there within ${seconds} seconds.`, { cause });
  return withDeadline(work.run.signal, { seconds, patience: () => UNWIND_SECONDS, late }, async () =>
    step.prepare?.(work),
  );
}

/**
 * Returns the seconds that a step has to return after it was told to end. Workloads and commands keep their grace periods, unless other
 * workers wait for the claim.
 */
function unwindSeconds({ deployable, tasks }: ServiceWork, reason: unknown): number {
  if (reason === 'lost' || reason === 'give-back') return UNWIND_SECONDS;
  const grace = Math.max(
    deployable ? timesOf(deployable).unwind : 0,
    ...(tasks ?? []).map(({ task }) => task.gracePeriodSeconds),
  );
  return UNWIND_SECONDS + grace;
}

/** Returns the seconds in which a release gets ready or fails, and those in which it then is taken back. */
function timesOf(deployable: Deployable): { ready: number; unwind: number } {
  switch (deployable.type) {
    case 'workload':
      return { ready: deployable.readyTimeoutSeconds, unwind: deployable.gracePeriodSeconds };
    case 'helm':
      // The release before has as long to get ready again.
      return { ready: 2 * deployable.timeoutSeconds, unwind: CHART_UNWIND_SECONDS };
  }
}

/** Returns the seconds without progress after which a step counts as stuck; null if it only waits. */
function progressSeconds(work: ServiceWork, step: Step): number | null {
  if (step.waits) return null;
  const { stepProgressSeconds } = work.run.parts.platform.settings;
  const { deployable, tasks } = work;
  if (step.phase === 'execute') {
    const longest = Math.max(0, ...(tasks ?? []).map(({ task }) => task.timeoutSeconds + task.gracePeriodSeconds));
    return Math.max(stepProgressSeconds, longest + APPLY_MARGIN_SECONDS);
  }
  if (!step.applies || !deployable) return stepProgressSeconds;
  const { ready, unwind } = timesOf(deployable);
  return Math.max(stepProgressSeconds, ready + unwind + APPLY_MARGIN_SECONDS);
}

/** Adds the facts and the state of the service's end to the write that ends its last step. Returns the name of what it moves. */
function addEnd(work: ServiceWork, write: FencedWrite): RawBuilder<unknown> {
  const { run, service, facts } = work;
  const { db, scope } = run;
  const { serviceId } = service;
  switch (run.snapshot.action) {
    case 'DEPLOY': {
      const id = newId();
      write.add(
        insertRelease(db, scope, {
          id,
          deploymentId: run.claim.deployment.id,
          service,
          resolution: run.resolution.services[serviceId] ?? {},
          image: work.image,
          buildKey: work.planned.buildKey,
        }),
      );
      write.add(
        recordHandle(db, scope, serviceId, {
          handle: work.handle,
          wanted: 'running',
          releaseId: id,
          newestCommit: newestCommitAfter(work),
        }),
      );
      if (work.domains) write.add(run.parts.deleteOtherRoutes(db, scope, serviceId, work.domains));
      break;
    }
    case 'STOP':
      write.add(
        recordHandle(db, scope, serviceId, {
          handle: work.handle,
          wanted: facts?.wanted === 'absent' ? 'absent' : 'stopped',
        }),
      );
      break;
    case 'RESTART':
      write.add(recordHandle(db, scope, serviceId, { handle: work.handle, wanted: 'running' }));
      break;
    case 'UNINSTALL':
      write.add(recordHandle(db, scope, serviceId, { handle: null, wanted: 'absent', releaseId: null }));
      write.add(forgetImages(db, scope, serviceId));
      break;
    case 'DELETE':
      write.add(deleteService(db, scope, serviceId));
      break;
    case 'RUN':
    // What ran leaves the service as it was.
  }
  return addMove(run, write, 'succeed', { serviceIds: [serviceId] });
}

/** Returns the newest commit after a deployment. A rollback, or a repeat of one, keeps the commit recorded before it. */
function newestCommitAfter({ run, service, facts }: ServiceWork): NewestCommit {
  const commit = run.resolution.services[service.serviceId]?.commit?.id ?? null;
  const before = facts?.release?.commit?.id ?? null;
  const keeps = run.snapshot.rollbackTo !== undefined || (run.snapshot.repeat && commit === before);
  return keeps ? { atLeast: before } : { exact: commit };
}

/** Records the failure of a service, which people read, or its cancel. */
async function fail(work: ServiceWork, at: Position, error: Error): Promise<void> {
  const { run, service, planned } = work;
  if (error instanceof ClaimLost || error instanceof DatabaseAway || isHandedOver(run)) throw error;
  const cancelled = run.signal.aborted;
  const message = work.mask(error.message);
  const step = at.place?.name ?? null;
  const ids = { deploymentId: run.claim.deployment.id, serviceId: service.serviceId };
  const lastLines =
    error instanceof RuntimeError ? error.lastLines && maskLines(error.lastLines, work.mask) : undefined;
  const code = planned.failure?.code ?? codeOf(error, step);
  const output = lastLines?.map(({ text }) => text) ?? work.output;
  const failure: ServiceError = { code, step, message, cause: diagnose({ code, message, output }) };
  if (!cancelled) {
    const tell = (text: string) =>
      run.log.write({ serviceId: service.serviceId, step: step ?? 'DEPLOYMENT', text, error: true });
    tell(message);
    if (failure.cause) tell(textOf(failure.cause));
    run.parts.platform.log.warn({ ...ids, err: error }, 'a service failed to deploy');
  }
  if (at.place) at.write.add(failStep(run.db, at.place, cancelled ? 'CANCEL' : 'ERROR', message));
  const kept = run.snapshot.action === 'DELETE' ? { deleting: false as const } : {};
  // One row is written by one part only.
  if (isAbandoned(error)) at.write.add(markUnknown(run.db, run.scope, service.serviceId, kept));
  else if (run.snapshot.action === 'DELETE') at.write.add(keepService(run.db, run.scope, service.serviceId));
  addMove(run, at.write, cancelled ? 'cancelled' : 'fail', {
    serviceIds: [service.serviceId],
    ...(cancelled ? {} : { error: failure }),
  });
  if (!cancelled && lastLines) at.write.add(keepLastLines(run.db, run.scope, ids, lastLines));
  await sendWithLog(run, at.write);
  if (cancelled) await abandon(work);
  await discardTasks(work, discardsOf(work, work.tasks ?? []));
}

const textOf = ({ code, summary, fix }: Cause): string => `${code}: ${summary} ${fix}`;

const isAbandoned = (error: Error): boolean => error instanceof Abandoned || error.cause instanceof Abandoned;

async function abandon({ run, service, tasks = [] }: ServiceWork): Promise<void> {
  const [first] = tasks;
  if (!first) return;
  const context = systemContext({ ...run.parts.platform, db: run.db });
  await run.parts.hooks[service.kind]?.abandon?.(context, service, first.task.identity);
}
