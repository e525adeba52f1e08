import { rm } from 'node:fs/promises';
import { storable } from '#kernel/storable.ts';
import { json } from '#platform/database/json.ts';
import { audit, auditInsert } from '#platform/events/audit.ts';
import { Activity } from '#deployments/executor/activity.ts';
import { DatabaseAway, type Claim } from '#deployments/executor/claims.ts';
import { ClaimLost } from '#platform/work/index.ts';
import { UNWIND_SECONDS, withDeadline } from '#kernel/deadline.ts';
import type { EngineParts } from '#deployments/executor/engine.ts';
import { loadFacts, removeEmptied } from '#deployments/executor/facts.ts';
import { again, fenced, type ServiceState } from '#deployments/executor/fenced-write.ts';
import {
  addMove,
  addRecap,
  contextOf,
  isHandedOver,
  send,
  sendWithLog,
  sourcesOf,
  tell,
  writeOf,
  type PlannedRun,
  type Run,
  type RunOptions,
} from '#deployments/executor/run-context.ts';
import { withoutLostImages } from '#deployments/executor/lost-images.ts';
import { resolve } from '#deployments/executor/resolve.ts';
import { runService } from '#deployments/executor/service-run.ts';
import { loadSteps } from '#deployments/executor/step-log.ts';
import { attemptFolder, checkoutsOf } from '#deployments/executor/checkouts.ts';
import { DeploymentLog } from '#deployments/logs/writer.ts';
import { diagnose } from '#deployments/causes/index.ts';
import { codeOf, toErrorView, type ServiceError } from '#deployments/model/errors.ts';
import type { Plan, PlannedService, PlannedStage, Resolution, Snapshot } from '#deployments/model/snapshot.ts';
import { requestEventsOf } from '#deployments/model/names.ts';
import { makePlan } from '#deployments/planner/plan.ts';
import { ENDED, endOpenSteps, revive } from '#deployments/queries.ts';
import { eventOf } from '#deployments/request.ts';

/** Pickups without one finished step after which a deployment is given up (docs/contributing/engine.md, *The queue*). */
const MAX_ATTEMPTS = 5;

/** Actions that make something run; the others take it down, which is always allowed. */
const STARTS = new Set<string>(['DEPLOY', 'RESTART', 'RUN']);

/**
 * Carries a claimed deployment on to its end, from wherever an earlier attempt left it: resolves, plans, goes through the stages
 * (docs/contributing/engine.md, *Snapshot, resolution, plan*). Every failure ends in a state that people see; only an attempt that must not go on throws.
 */
export async function runDeployment(parts: EngineParts, claim: Claim, options: RunOptions): Promise<void> {
  const { deployment } = claim;
  const run = await open(parts, claim, options);
  let left = checkoutsOf(parts.workDirectory, deployment.id);
  try {
    if (deployment.attempts > MAX_ATTEMPTS)
      throw new Error(`Given up after ${MAX_ATTEMPTS} attempts that finished no step.`);
    const states = deployment.cancel_requested_at ? undefined : await runStages(await prepare(run));
    await finishUp(run, null, states);
  } catch (error) {
    if (error instanceof ClaimLost || error instanceof DatabaseAway || isHandedOver(run)) {
      run.span.set({ 'quarterdeck.outcome': 'HANDED_OVER' });
      // The worker that goes on with it may use the same folder already.
      left = attemptFolder(run);
      throw error;
    }
    await finishUp(run, error as Error);
  } finally {
    run.span.end();
    await rm(left, { recursive: true, force: true });
  }
}

async function open(parts: EngineParts, claim: Claim, options: RunOptions): Promise<Run> {
  const { deployment } = claim;
  const { db } = parts.platform;
  const snapshot = deployment.snapshot as Snapshot;
  const attributes = {
    'quarterdeck.deployment.id': deployment.id,
    'quarterdeck.environment.id': deployment.environment_id,
    'quarterdeck.organization.id': deployment.organization_id,
    'quarterdeck.action': snapshot.action,
    'quarterdeck.attempt': deployment.attempts,
  };
  return {
    parts,
    db,
    claim,
    snapshot,
    scope: { organizationId: deployment.organization_id },
    log: isResumed(claim) ? await again(() => DeploymentLog.resume(db, claim)) : new DeploymentLog(db, claim, 0),
    span: parts.tracer.start('deployment', { kind: 'internal', attributes }),
    options,
    signal: options.lease.signal,
  };
}

/** Returns whether an earlier attempt may have left something. */
const isResumed = ({ deployment }: Claim): boolean => deployment.attempts > 1 || deployment.plan !== null;

/** Resolves and plans, each once for all attempts: every attempt does the same. */
async function prepare(run: Run): Promise<PlannedRun> {
  const { deployment } = run.claim;
  // What an attempt that was killed or frozen has started goes on by itself.
  if (isResumed(run.claim)) await run.parts.endProcessesIn(checkoutsOf(run.parts.workDirectory, deployment.id));
  const ids = run.snapshot.services.map((service) => service.serviceId);
  const facts = await again(() => loadFacts(run.db, run.scope, ids));
  const resolution =
    (deployment.resolution as Resolution | null) ?? (await resolve(resolvingOf(run), run.snapshot, facts, run.signal));
  const cluster = { id: run.snapshot.clusterId, runtime: run.claim.names.runtime };
  const runtimeOf = () => run.parts.runtimes.runtimeOf(cluster);
  let plan = deployment.plan as Plan | null;
  if (!plan) {
    const look = () => withoutLostImages(run, { resolution, facts }, runtimeOf);
    const there = await inTime(run, 'The runtime did not answer', look);
    plan = makePlan(run.snapshot, there.resolution, there.facts, run.parts.kinds);
    await start(run, resolution, plan);
  }
  if (STARTS.has(run.snapshot.action)) await run.parts.checkPlace(run.scope.organizationId, cluster.id);
  const resumed = isResumed(run.claim);
  return {
    ...run,
    resolution,
    plan,
    facts,
    runtime: plan.stages.length > 0 ? await inTime(run, 'The runtime did not answer', runtimeOf) : undefined,
    steps: resumed ? await again(() => loadSteps(run.db, run.claim)) : new Map(),
    ended: resumed ? await again(() => loadEnded(run)) : new Map(),
    unended: plan.stages.reduce((count, stage) => count + stage.services.length, 0),
    recap: undefined,
    activity: new Activity({
      // A run that was handed over writes nothing more; the claim of its successor ends the rest.
      record: async (isResting) =>
        isHandedOver(run) ? undefined : send(run, writeOf(run).set({ resting: isResting })),
      rest: (isResting) => run.options.lease.rest(isResting),
    }),
  };
}

const resolvingOf = (run: Run) => ({
  kinds: run.parts.kinds,
  sources: sourcesOf(run),
  apartAfter: run.parts.platform.settings.stepProgressSeconds,
});

/** Runs work under a deadline before there is a step: the systems that it asks may hang. */
function inTime<T>(run: Run, what: string, work: () => Promise<T>): Promise<T> {
  const seconds = run.parts.platform.settings.stepProgressSeconds;
  const late = (cause: unknown) => new Error(`${what} within ${seconds} seconds.`, { cause });
  return withDeadline(run.signal, { seconds, patience: () => UNWIND_SECONDS, late }, work);
}

async function start(run: Run, resolution: Resolution, plan: Plan): Promise<void> {
  const write = writeOf(run).set({ resolution: json(resolution), plan: json(plan) });
  const commits = Object.fromEntries(
    Object.entries(resolution.services).map(([id, { commit }]) => [id, commit ?? null]),
  );
  addMove(run, write, 'start', { commits });
  await send(run, write);
}

/** Returns the services that ended in an earlier attempt, with whether that was a success. */
async function loadEnded(run: Run): Promise<Map<string, boolean>> {
  const rows = await run.db
    .selectFrom('deployment_service')
    .select(['service_id', 'state', 'error'])
    .where('organization_id', '=', run.scope.organizationId)
    .where('deployment_id', '=', run.claim.deployment.id)
    .where('ended_at', 'is not', null)
    .execute();
  return new Map(rows.map((row) => [row.service_id, row.error === null && !/ERROR|CANCELED/.test(row.state)]));
}

/** Returns the states of the services, where they were written with the end of the last of them. */
async function runStages(run: PlannedRun): Promise<ServiceState[] | undefined> {
  const runOne = (planned: PlannedService) =>
    run.activity.during(() => runService(run, planned)).finally(() => run.unended--);
  for (const stage of run.plan.stages) {
    run.signal.throwIfAborted();
    const ends = await Promise.allSettled(stage.services.map(runOne));
    const broken = ends.find((end) => end.status === 'rejected');
    if (broken) throw broken.reason;
    // A failure ends its stage when the others there have settled; later stages are cancelled. What was known to fail fails alone.
    const fails = (end: PromiseSettledResult<boolean>, at: number) =>
      end.status === 'fulfilled' && !end.value && !stage.services[at]!.failure;
    if (ends.some(fails)) {
      await cancelLater(run, stage);
      break;
    }
  }
  return run.recap;
}

async function cancelLater(run: PlannedRun, failed: PlannedStage): Promise<void> {
  const later = run.plan.stages.slice(run.plan.stages.indexOf(failed) + 1).flatMap((stage) => stage.services);
  if (later.length === 0) return;
  const write = writeOf(run);
  addMove(run, write, 'cancelled', { serviceIds: later.map((service) => service.serviceId) });
  await send(run, write);
}

/**
 * Writes what is left of the log and the end of the deployment: RECAP in between (docs/contributing/engine.md). `recapped` are the states of
 * the services where that was written with the end of the last of them.
 */
async function finishUp(run: Run, failure: Error | null, recapped?: ServiceState[]): Promise<void> {
  const cancelled = run.signal.reason === 'cancel' || run.claim.deployment.cancel_requested_at !== null;
  const error = cancelled ? null : failure;
  if (error !== null) run.log.write({ serviceId: null, step: 'DEPLOYMENT', text: error.message, error: true });
  if (error !== null || cancelled) {
    const write = writeOf(run);
    addMove(run, write, cancelled ? 'cancelled' : 'fail', error === null ? {} : { error: errorOf(error) });
    write.add(endOpenSteps(run.db, run.scope, run.claim.deployment.id, cancelled ? 'CANCEL' : 'ERROR'));
    await send(run, write);
  }
  const isEnded = error === null && !cancelled && recapped !== undefined;
  const states = isEnded ? recapped : await recap(run);
  const outcome = outcomeOf(states, error, cancelled);
  run.span.set({ 'quarterdeck.outcome': outcome });
  if (outcome === 'ERROR') run.span.fail('failed');
  await end(run, outcome, outcome === 'CANCELED' ? null : error, states);
}

/** Returns an error that no step caused as the failure of every service that has not ended. */
function errorOf(error: Error): ServiceError {
  const [code, { message }] = [codeOf(error, null), error];
  return { code, step: null, message, cause: diagnose({ code, message, output: [] }) };
}

/** Writes the rest of the log together with the status RECAP, and returns the states of the services. */
async function recap(run: Run): Promise<ServiceState[]> {
  const write = writeOf(run);
  addRecap(run, write);
  return (await sendWithLog(run, write)).rows;
}

/** Returns the outcome of a deployment. A cancel after all work had ended changes nothing (docs/contributing/engine.md). */
function outcomeOf(states: ServiceState[], error: Error | null, cancelled: boolean): 'SUCCESS' | 'ERROR' | 'CANCELED' {
  if (states.some(({ state }) => state.endsWith('_ERROR'))) return 'ERROR';
  // Also where the deployment failed in the moment in which it was cancelled: its services were cancelled, and none of them failed.
  if (states.some(({ state }) => state === 'CANCELED')) return 'CANCELED';
  if (error !== null) return 'ERROR';
  return cancelled && states.length === 0 ? 'CANCELED' : 'SUCCESS';
}

async function end(
  run: Run,
  outcome: 'SUCCESS' | 'ERROR' | 'CANCELED',
  error: Error | null,
  states: ServiceState[],
): Promise<void> {
  const { action } = run.snapshot;
  const row = { ...ENDED, outcome, error: error && storable(error.message) };
  const events = requestEventsOf(action, run.snapshot.services);
  const type = outcome === 'SUCCESS' ? events.done : events.failed;
  const event = {
    ...eventOf(
      { place: placeOf(run), whole: run.claim.deployment.whole_environment, services: run.snapshot.services },
      type,
    ),
    ...(outcome === 'ERROR' ? { after: { errors: errorsOf(run, states) } } : {}),
  };
  if (action !== 'DELETE') {
    const write = writeOf(run).set(row);
    if (outcome !== 'CANCELED') write.add(auditInsert(contextOf(run, run.db), event));
    await send(run, write);
    return;
  }
  await fenced(run.db, run.claim, async (db) => {
    if (outcome !== 'CANCELED') await audit(contextOf(run, db), event);
    await db
      .updateTable('deployment')
      .set(row)
      .where('organization_id', '=', run.scope.organizationId)
      .where('id', '=', run.claim.deployment.id)
      .execute();
    if (outcome !== 'SUCCESS') await revive(db, run.scope, run.claim.deployment);
    await removeEmptied(db, run.scope, run.claim.deployment.environment_id);
  });
  tell(run);
}

/** Returns the failed services with their errors, as the event of the end shows them. */
const errorsOf = ({ claim, snapshot }: Run, states: ServiceState[]) =>
  states
    .filter(({ error }) => error !== null)
    .map((state) => ({
      service_id: state.service_id,
      service_name: state.name,
      ...toErrorView({ ...state, environment_id: snapshot.environmentId, number: claim.deployment.number }),
    }));

const placeOf = (run: Run) => ({
  organizationId: run.scope.organizationId,
  projectId: run.snapshot.projectId,
  projectName: run.claim.names.project,
  environmentId: run.snapshot.environmentId,
  environmentName: run.claim.names.environment,
  clusterId: run.snapshot.clusterId,
  clusterLocked: false,
});
