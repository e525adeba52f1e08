import type { RawBuilder } from 'kysely';
import { systemContext, type Context } from '#platform/context.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Lease } from '#platform/work/index.ts';
import { OUTBOX_CHANNEL, outboxInsert, type DeploymentOutboxEvent } from '#platform/events/outbox.ts';
import type { Span } from '#platform/telemetry/index.ts';
import type { Activity } from '#deployments/executor/activity.ts';
import type { Claim } from '#deployments/executor/claims.ts';
import { generationOf, type EngineParts, type Sources } from '#deployments/executor/engine.ts';
import type { ServiceFacts } from '#deployments/executor/facts.ts';
import { FencedWrite, type ServiceState } from '#deployments/executor/fenced-write.ts';
import type { Slots } from '#deployments/executor/slots.ts';
import type { StepRecords } from '#deployments/executor/step-log.ts';
import type { DeploymentLog } from '#deployments/logs/writer.ts';
import { PROGRESS } from '#deployments/model/channels.ts';
import type { Plan, Resolution, Snapshot } from '#deployments/model/snapshot.ts';
import type { Trigger } from '#deployments/model/states.ts';
import { outboxEventOf } from '#deployments/outbox-event.ts';
import { moveServices, type MoveOptions } from '#deployments/queries.ts';
import type { Runtime, WorkloadIdentity } from '#runtimes/runtime.ts';

export interface RunOptions {
  /** Lease on the deployment. */
  lease: Lease<'cancel'>;
  /** Places for the builds of this worker. */
  builds: Slots;
  /** Places for the checkouts of this worker. */
  checkouts: Slots;
}

/** Context of one attempt at a deployment. */
export interface Run {
  parts: EngineParts;
  db: Database;
  claim: Claim;
  snapshot: Snapshot;
  scope: Scope;
  log: DeploymentLog;
  span: Span;
  options: RunOptions;
  signal: AbortSignal;
}

/** Run whose resolution and plan are known. */
export interface PlannedRun extends Run {
  resolution: Resolution;
  plan: Plan;
  runtime: Runtime | undefined;
  facts: Map<string, ServiceFacts>;
  steps: StepRecords;
  /** Services that ended in an earlier attempt, with whether that was a success. */
  ended: Map<string, boolean>;
  /** Number of services whose work has not returned in this attempt. */
  unended: number;
  /** States of the services, if the status RECAP was written together with the end of the last of them. */
  recap: ServiceState[] | undefined;
  activity: Activity;
}

/** Repositories and registries for what runs on the cluster of the deployment. */
export const sourcesOf = ({ parts, claim }: Pick<Run, 'parts' | 'claim'>): Sources =>
  parts.sourcesFor(claim.names.runtime);

/** Returns the identity of what a service of the deployment makes outside the database. */
export const identityIn = (
  { parts, scope, snapshot, claim: { deployment } }: Run,
  serviceId: string,
): WorkloadIdentity => ({
  installation: parts.installation.id,
  organizationId: scope.organizationId,
  projectId: snapshot.projectId,
  environmentId: snapshot.environmentId,
  serviceId,
  generation: generationOf(deployment.epoch!, deployment.number),
});

export const writeOf = (run: Run): FencedWrite => new FencedWrite(run.db, run.claim);

/**
 * Sends a write that ends a step or a service, with the lines of the log up to now: work that is not repeated must not lose its lines.
 */
export async function sendWithLog(run: Run, write: FencedWrite) {
  const lines = await run.log.drain();
  if (lines) write.add(lines);
  return send(run, write);
}

/** Sends a write of the run and wakes those who watch. A cancel that is found with it ends the run like one that is told. */
export async function send(run: Run, write: FencedWrite) {
  const result = await write.send();
  tell(run);
  if (result.cancel && !run.signal.aborted) run.options.lease.abort('cancel');
  return result;
}

/** Wakes, after a commit, those who deliver webhooks and those who watch the deployment. */
export function tell(run: Run): void {
  run.parts.platform.notify(OUTBOX_CHANNEL);
  run.parts.platform.notify(PROGRESS, run.claim.deployment.id);
}

const WEBHOOK: Partial<Record<Trigger, DeploymentOutboxEvent['type']>> = {
  start: 'DEPLOYMENT_STARTED',
  succeed: 'DEPLOYMENT_SUCCESSFUL',
  fail: 'DEPLOYMENT_FAILURE',
  cancelled: 'DEPLOYMENT_CANCELLED',
};

/** Moves services as a part of the write, and tells webhooks of those that it moves. Returns the name under which parts can read them. */
export function addMove(
  run: Run,
  write: FencedWrite,
  trigger: Trigger,
  options: MoveOptions = {},
): RawBuilder<unknown> {
  const { deployment } = run.claim;
  const moved = write.add(moveServices(run.db, run.scope, deployment.id, run.snapshot.action, trigger, options));
  const type = WEBHOOK[trigger];
  if (!type) return moved;
  const payload = sql`${json(outboxEventOf(type, deployment, run.claim.names))}::jsonb
    || jsonb_build_object('status', m.state, 'service', jsonb_build_object('id', m.service_id, 'name', m.name, 'type', m.kind))
    || case when m.error is null then '{}'::jsonb
      else jsonb_build_object('error', jsonb_build_object('code', m.error_code, 'step', m.error_step, 'message', m.error,
        'cause', m.error_cause)) end`;
  write.add(outboxInsert(run.scope.organizationId, 'deployment', payload, sql`${moved} m`));
  return moved;
}

/**
 * Adds the status RECAP to a write that answers the states of the services. Those that the same write moves are read from what that part
 * returns: the table shows them as they were before.
 */
export function addRecap(run: Run, write: FencedWrite, moved?: RawBuilder<unknown>): void {
  const columns = sql.raw('service_id, name, state, error, error_code, error_step, error_cause');
  const others = moved ? sql`and service_id not in (select service_id from ${moved})` : sql``;
  write.set({ status: 'RECAP' }).addReturning(sql`select ${columns} from deployment_service
    where organization_id = ${run.scope.organizationId} and deployment_id = ${run.claim.deployment.id} ${others}
    ${moved ? sql`union all select ${columns} from ${moved}` : sql``}`);
}

/** Returns a context that acts in the name of the user who requested the deployment (docs/contributing/rules.md 42). */
export const contextOf = (run: Run, db: Database): Context => ({
  ...systemContext(run.parts.platform),
  db,
  // The write is not over yet; `send` wakes the waiters for its events.
  afterCommit: () => undefined,
  actor: {
    userId: run.claim.deployment.requested_by,
    name: run.claim.deployment.requested_by_name,
    origin: run.claim.deployment.origin as 'API',
    userAgent: null,
  },
});

/** Returns whether the attempt was ended from outside other than by a cancel: it must write nothing more. */
export const isHandedOver = (run: Run): boolean => run.signal.reason === 'lost' || run.signal.reason === 'give-back';
