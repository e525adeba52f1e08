import { rm } from 'node:fs/promises';
import path from 'node:path';
import { sql, type Database } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { systemContext, type Context } from '#platform/context.ts';
import { audit, type EventType } from '#platform/events/audit.ts';
import { OUTBOX_CHANNEL, publish } from '#platform/events/outbox.ts';
import { ClaimLost, fenced, type Claim } from '#deployments/executor/claims.ts';
import type { EngineParts } from '#deployments/executor/engine.ts';
import { loadFacts, removeEmptied, type ServiceFacts } from '#deployments/executor/facts.ts';
import { runService } from '#deployments/executor/service-run.ts';
import { DeploymentLog } from '#deployments/logs/writer.ts';
import { PROGRESS } from '#deployments/model/channels.ts';
import {
  FORMAT,
  type Plan,
  type PlannedService,
  type PlannedStage,
  type Resolution,
  type Snapshot,
} from '#deployments/model/snapshot.ts';
import type { DeploymentAction, Trigger } from '#deployments/model/states.ts';
import { makePlan } from '#deployments/planner/plan.ts';
import { endDeployment, moveServices } from '#deployments/queries.ts';
import { eventOf } from '#deployments/request.ts';
import type { Span } from '#platform/telemetry/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';

/** Pickups without one finished step after which a deployment is given up (engine.md, *The queue*). */
const MAX_ATTEMPTS = 5;

export interface RunOptions {
  /** Aborted to cancel, to give the claim back, or because it is lost; `reason` says which. */
  signal: AbortSignal;
  buildSlot: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Why a run is ended from outside. */
export type StopReason = 'cancel' | 'give-back' | 'lost';

interface Run {
  parts: EngineParts;
  claim: Claim;
  snapshot: Snapshot;
  scope: { organizationId: string };
  action: DeploymentAction;
  names: Names;
  log: DeploymentLog;
  span: Span;
  options: RunOptions;
}

/** Names that events and webhooks carry. */
interface Names {
  organization: string;
  project: string;
  environment: string;
  mode: string;
  runtime: string;
}

/**
 * Carries a claimed deployment on to its end, from wherever an earlier attempt left it: resolves, plans, goes through the stages
 * (engine.md, *Snapshot, resolution, plan*). Every failure ends in a state that people see; only a lost or given-back claim throws.
 */
export async function runDeployment(parts: EngineParts, claim: Claim, options: RunOptions): Promise<void> {
  const { deployment } = claim;
  const scope = { organizationId: deployment.organization_id };
  const snapshot = deployment.snapshot as Snapshot;
  const names = await findNames(parts.platform.db, scope, deployment.environment_id);
  const log = await DeploymentLog.open(parts.platform.db, { ...scope, deploymentId: deployment.id });
  const span = parts.tracer.start('deployment', { kind: 'internal', attributes: attributesOf(deployment) });
  const run: Run = { parts, claim, snapshot, scope, action: snapshot.action, names, log, span, options };
  try {
    if (deployment.attempts > MAX_ATTEMPTS)
      throw new Error(`Given up after ${MAX_ATTEMPTS} attempts that finished no step.`);
    if (!deployment.cancel_requested_at) {
      const resolution = await resolve(run);
      const plan = await planOnce(run, resolution);
      await move(run, 'start');
      await runStages(run, resolution, plan);
    }
    await finishUp(run, null);
  } catch (error) {
    if (error instanceof ClaimLost || options.signal.reason === 'lost' || options.signal.reason === 'give-back') {
      span.set({ 'quarterdeck.outcome': 'HANDED_OVER' });
      throw error;
    }
    await finishUp(run, (error as Error).message);
  } finally {
    span.end();
    await rm(path.join(parts.workDirectory, deployment.id), { recursive: true, force: true });
  }
}

const attributesOf = (deployment: Claim['deployment']) => ({
  'quarterdeck.deployment.id': deployment.id,
  'quarterdeck.environment.id': deployment.environment_id,
  'quarterdeck.organization.id': deployment.organization_id,
  'quarterdeck.action': (deployment.snapshot as Snapshot).action,
  'quarterdeck.attempt': deployment.attempts,
});

/** Commits of branches, looked up outside any transaction and stored once. */
async function resolve(run: Run): Promise<Resolution> {
  const { deployment } = run.claim;
  if (deployment.resolution) return deployment.resolution as Resolution;
  const resolution: Resolution = { format: FORMAT, services: {} };
  if (run.action === 'DEPLOY') {
    const facts = await loadFacts(
      run.parts.platform.db,
      run.scope,
      run.snapshot.services.map((service) => service.serviceId),
    );
    await Promise.all(
      run.snapshot.services.map(async (service) => {
        const source = run.parts.kinds[service.kind]?.source(service);
        if (!source) return;
        const last = facts.get(service.serviceId)?.release?.commit;
        const commit =
          run.snapshot.repeat && last && !service.commitId
            ? last
            : await run.parts.sources.resolve({
                ...source,
                organizationId: run.snapshot.organizationId,
                commitId: service.commitId,
                signal: run.options.signal,
              });
        resolution.services[service.serviceId] = { commit };
      }),
    );
  }
  await fenced(run.parts.platform.db, run.claim, async (db) => {
    await db
      .updateTable('deployment')
      .set({ resolution: json(resolution) })
      .where('organization_id', '=', run.scope.organizationId)
      .where('id', '=', deployment.id)
      .execute();
    for (const [serviceId, { commit }] of Object.entries(resolution.services))
      await db
        .updateTable('deployment_service')
        .set({ commit: json(commit ?? null) })
        .where('organization_id', '=', run.scope.organizationId)
        .where('deployment_id', '=', deployment.id)
        .where('service_id', '=', serviceId)
        .execute();
  });
  return resolution;
}

async function planOnce(run: Run, resolution: Resolution): Promise<Plan> {
  const { deployment } = run.claim;
  if (deployment.plan) return deployment.plan as Plan;
  const facts = await loadFacts(
    run.parts.platform.db,
    run.scope,
    run.snapshot.services.map((service) => service.serviceId),
  );
  const releases = Object.fromEntries(
    [...facts].flatMap(([id, fact]) => (fact.release && !fact.dirty ? [[id, fact.release]] : [])),
  );
  const plan = makePlan(run.snapshot, resolution, releases, run.parts.kinds);
  await fenced(run.parts.platform.db, run.claim, (db) =>
    db
      .updateTable('deployment')
      .set({ plan: json(plan) })
      .where('organization_id', '=', run.scope.organizationId)
      .where('id', '=', deployment.id)
      .execute(),
  );
  return plan;
}

async function runStages(run: Run, resolution: Resolution, plan: Plan): Promise<void> {
  const cluster = { id: run.snapshot.clusterId, runtime: run.names.runtime };
  const runtime = plan.stages.length > 0 ? await run.parts.runtimeOf(cluster) : undefined;
  for (const stage of plan.stages) {
    const facts = await loadFacts(
      run.parts.platform.db,
      run.scope,
      stage.services.map((service) => service.serviceId),
    );
    const ends = await Promise.all(
      stage.services.map((planned) => runOne(run, resolution, plan, planned, facts.get(planned.serviceId), runtime!)),
    );
    run.options.signal.throwIfAborted();
    // A failure ends its stage when the others there have settled; later stages are cancelled.
    if (ends.includes(false)) return cancelLater(run, stage, plan);
  }
}

/** Runs a service to its end and answers whether that was a success. A service that an earlier attempt has ended is left alone. */
async function runOne(
  run: Run,
  resolution: Resolution,
  plan: Plan,
  planned: PlannedService,
  facts: ServiceFacts | undefined,
  runtime: Runtime,
): Promise<boolean> {
  const { serviceId } = planned;
  const service = run.snapshot.services.find((candidate) => candidate.serviceId === serviceId)!;
  const present = await stateNow(run, serviceId);
  if (present?.ended_at) return present.error === null && !/ERROR|CANCELED/.test(present.state);
  try {
    await runService({
      parts: run.parts,
      claim: run.claim,
      snapshot: run.snapshot,
      resolution,
      plan,
      planned,
      service,
      facts,
      runtime,
      log: run.log,
      span: run.span,
      signal: run.options.signal,
      buildSlot: run.options.buildSlot,
      move: (trigger) => move(run, trigger, serviceId),
      succeed: (db) => moveIn(run, db, 'succeed', serviceId),
    });
    tell(run);
    return true;
  } catch (error) {
    if (error instanceof ClaimLost) throw error;
    if (run.options.signal.aborted) {
      if (run.options.signal.reason === 'cancel') await move(run, 'cancelled', serviceId);
      return false;
    }
    const message = (error as Error).message;
    run.log.write({ serviceId, step: 'DEPLOYMENT', text: message, error: true });
    run.parts.platform.log.warn(
      { deploymentId: run.claim.deployment.id, serviceId, err: error },
      'a service failed to deploy',
    );
    await move(run, 'fail', serviceId, message);
    return false;
  }
}

const stateNow = (run: Run, serviceId: string) =>
  run.parts.platform.db
    .selectFrom('deployment_service')
    .select(['state', 'ended_at', 'error'])
    .where('organization_id', '=', run.scope.organizationId)
    .where('deployment_id', '=', run.claim.deployment.id)
    .where('service_id', '=', serviceId)
    .executeTakeFirst();

async function cancelLater(run: Run, failed: PlannedStage, plan: Plan): Promise<void> {
  const later = plan.stages.slice(plan.stages.indexOf(failed) + 1).flatMap((stage) => stage.services);
  for (const service of later) await move(run, 'cancelled', service.serviceId);
}

const move = async (run: Run, trigger: Trigger, serviceId?: string, error?: string): Promise<void> => {
  await fenced(run.parts.platform.db, run.claim, (db) => moveIn(run, db, trigger, serviceId, error));
  tell(run);
};

/** Wakes, after the commit, those who deliver webhooks and those who watch the deployment. */
function tell(run: Run): void {
  run.parts.platform.notify(OUTBOX_CHANNEL);
  run.parts.platform.notify(PROGRESS, run.claim.deployment.id);
}

const WEBHOOK: Partial<
  Record<Trigger, 'DEPLOYMENT_STARTED' | 'DEPLOYMENT_SUCCESSFUL' | 'DEPLOYMENT_FAILURE' | 'DEPLOYMENT_CANCELLED'>
> = {
  start: 'DEPLOYMENT_STARTED',
  succeed: 'DEPLOYMENT_SUCCESSFUL',
  fail: 'DEPLOYMENT_FAILURE',
  cancelled: 'DEPLOYMENT_CANCELLED',
};

/** Moves services and tells of it in the same transaction. */
async function moveIn(run: Run, db: Database, trigger: Trigger, serviceId?: string, error?: string): Promise<void> {
  const { deployment } = run.claim;
  const moved = await moveServices(db, run.scope, deployment.id, run.action, trigger, { serviceId, error });
  const type = WEBHOOK[trigger];
  const context = contextOf(run, db);
  for (const service of type ? moved : [])
    await publish(context, run.scope.organizationId, 'deployment', {
      type: type!,
      organization: { id: run.scope.organizationId, name: run.names.organization },
      project: { id: run.snapshot.projectId, name: run.names.project },
      environment: { id: run.snapshot.environmentId, name: run.names.environment, mode: run.names.mode },
      service: { id: service.service_id, name: service.name, type: service.kind },
      deployment_request_id: deployment.id,
      status: service.state,
      generation: deployment.number,
      sequence: deployment.number * 10 + (type === 'DEPLOYMENT_STARTED' ? 0 : 1),
    });
}

/** Acts in the name of whoever asked (decisions.md 42). */
const contextOf = (run: Run, db: Database): Context => ({
  ...systemContext(run.parts.platform),
  db,
  // The transaction is not over yet; `tell` wakes whoever waits for its events.
  afterCommit: () => undefined,
  actor: {
    userId: run.claim.deployment.requested_by,
    name: run.claim.deployment.requested_by_name,
    origin: run.claim.deployment.origin as 'API',
    userAgent: null,
  },
});

const DONE: Record<DeploymentAction, EventType> = {
  DEPLOY: 'DEPLOYED',
  STOP: 'STOPPED',
  RESTART: 'RESTARTED',
  DELETE: 'DELETED',
  UNINSTALL: 'UNINSTALLED',
};

/** Writes what is left of the log and the end of the deployment: RECAP in between (engine.md). */
async function finishUp(run: Run, error: string | null): Promise<void> {
  const { deployment } = run.claim;
  const { db } = run.parts.platform;
  const cancelled = run.options.signal.reason === 'cancel' || deployment.cancel_requested_at !== null;
  if (error && !cancelled) {
    run.log.write({ serviceId: null, step: 'DEPLOYMENT', text: error, error: true });
    await move(run, 'fail', undefined, error);
  }
  if (cancelled) await move(run, 'cancelled');
  await fenced(db, run.claim, (inside) =>
    inside
      .updateTable('deployment')
      .set({ status: 'RECAP' })
      .where('organization_id', '=', run.scope.organizationId)
      .where('id', '=', deployment.id)
      .execute(),
  );
  await run.log.flush();
  await fenced(db, run.claim, async (inside) => {
    const states = await inside
      .selectFrom('deployment_service')
      .select('state')
      .where('organization_id', '=', run.scope.organizationId)
      .where('deployment_id', '=', deployment.id)
      .execute();
    const failed = error !== null || states.some(({ state }) => /ERROR/.test(state));
    const outcome = cancelled ? 'CANCELED' : failed ? 'ERROR' : 'SUCCESS';
    if (outcome !== 'CANCELED') {
      const type = failed ? (`${run.action}_FAILED` as EventType) : DONE[run.action];
      await audit(
        contextOf(run, inside),
        eventOf({ place: placeOf(run), whole: deployment.whole_environment, services: run.snapshot.services }, type),
      );
    }
    run.span.set({ 'quarterdeck.outcome': outcome });
    if (outcome === 'ERROR') run.span.fail('failed');
    await endDeployment(inside, run.scope, deployment.id, outcome, error);
    if (failed || cancelled) await keepDeletable(run, inside);
    if (run.action === 'DELETE') await removeEmptied(inside, run.scope, deployment.environment_id);
  });
  tell(run);
}

/** A cancelled delete makes what is left of it usable again; a failed one can be asked for again. */
const keepDeletable = (run: Run, db: Database) =>
  run.action === 'DELETE'
    ? db
        .updateTable('service')
        .set({ deleting: false })
        .where('organization_id', '=', run.scope.organizationId)
        .where('id', '=', sql<string>`any(${run.snapshot.services.map((service) => service.serviceId)})`)
        .execute()
    : Promise.resolve([]);

const placeOf = (run: Run) => ({
  organizationId: run.scope.organizationId,
  projectId: run.snapshot.projectId,
  projectName: run.names.project,
  environmentId: run.snapshot.environmentId,
  environmentName: run.names.environment,
  clusterId: run.snapshot.clusterId,
  clusterLocked: false,
});

async function findNames(db: Database, scope: { organizationId: string }, environmentId: string): Promise<Names> {
  return db
    .selectFrom('environment')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .innerJoin('organization', 'organization.id', 'environment.organization_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select([
      'organization.name as organization',
      'project.name as project',
      'environment.name as environment',
      'environment.mode',
      'cluster.runtime',
    ])
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.id', '=', environmentId)
    .executeTakeFirstOrThrow();
}
