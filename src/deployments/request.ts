import { conflict } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { audit, type EventType, type TargetType } from '#platform/events/audit.ts';
import { json } from '#platform/database/json.ts';
import { cancelCovered } from '#deployments/cancel.ts';
import { FORMAT, type Resolution, type ServiceSnapshot, type Snapshot } from '#deployments/model/snapshot.ts';
import { eventOfRun, requestEventsOf, subActionOf } from '#deployments/model/names.ts';
import { DEPLOYMENTS, wakeOf } from '#deployments/model/channels.ts';
import { stateOf, type DeploymentAction } from '#deployments/model/states.ts';
import * as queries from '#deployments/queries.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';

/** The environment that a request is for; its row is locked by the caller's transaction. */
export interface DeploymentPlace {
  organizationId: string;
  projectId: string;
  projectName: string;
  environmentId: string;
  environmentName: string;
  clusterId: string;
  clusterLocked: boolean;
}

export interface DeploymentRequest {
  place: DeploymentPlace;
  action: DeploymentAction;
  /** Call that made the request: `REDEPLOY` repeats the commits of the last release. */
  trigger: 'DEPLOY' | 'REDEPLOY' | 'ROLLBACK' | 'STOP' | 'RESTART' | 'DELETE' | 'UNINSTALL' | 'RUN';
  /** True if every service of the environment is meant, not some of them. */
  whole: boolean;
  services: ServiceSnapshot[];
  /** Variables that all services of the environment see. */
  shared: FrozenVariable[];
  bestEffort?: boolean;
  /** Requested by a push, a rule or a schedule. */
  automatic?: boolean;
  /** Waiting deployment that this request joins, locked, with services that it may lack; null to join none. */
  widens?: string | null | undefined;
  /** Execution that a rollback goes back to, with its resolution. */
  rollback?: { to: NonNullable<Snapshot['rollbackTo']>; resolution: Resolution };
}

/**
 * Requests a deployment, in the transaction of the call: an answered request is never lost, an unanswered one never half there
 * (docs/contributing/engine.md, *The queue*). It waits behind what runs in the environment; if the last waiting request asks the same of the same services it
 * joins that one. A delete cancels what runs on what it covers. Answers the deployment's id. 409 on a locked cluster.
 */
export async function requestDeployment(context: Context, request: DeploymentRequest): Promise<string> {
  const { place, action } = request;
  if (place.clusterLocked)
    throw conflict('The cluster is locked: nothing can be requested on it until it is unlocked.');
  const scope = { organizationId: place.organizationId };
  const removes = action === 'DELETE' || action === 'UNINSTALL';
  if (removes) await cancelCovered(context, place, new Set(request.services.map((service) => service.serviceId)));

  const snapshot = snapshotOf(request);
  const events = requestEventsOf(action, request.services);
  // The audit log has no event of its own for a rollback: it is a deploy.
  await audit(context, eventOf(request, request.trigger === 'REDEPLOY' ? 'TRIGGER_REDEPLOY' : events.asked));
  const joined = await joinLast(context, request, snapshot);
  const { id, nodeId } = joined ?? (await enqueue(context, request, snapshot, scope));
  if (events.queued) await audit(context, eventOf(request, events.queued));
  context.afterCommit(() => context.notify(DEPLOYMENTS, wakeOf(id, nodeId)));
  return id;
}

/** Returns the snapshot that a request freezes. */
export const snapshotOf = (request: Omit<DeploymentRequest, 'whole'>): Snapshot => ({
  format: FORMAT,
  action: request.action,
  organizationId: request.place.organizationId,
  projectId: request.place.projectId,
  environmentId: request.place.environmentId,
  clusterId: request.place.clusterId,
  services: request.services,
  shared: request.shared,
  repeat: request.trigger === 'REDEPLOY' || (request.action === 'RUN' && eventOfRun(request.services) !== 'PLAN'),
  bestEffort: request.bestEffort ?? false,
  ...(request.rollback ? { rollbackTo: request.rollback.to } : {}),
});

/** Deployment that waits, and the machine that its cluster lives on. */
interface Queued {
  id: string;
  nodeId: string | null;
}

async function enqueue(
  context: Context,
  request: DeploymentRequest,
  snapshot: Snapshot,
  scope: { organizationId: string },
): Promise<Queued> {
  const { place, action } = request;
  const id = newId();
  const number = await queries.takeNumber(context.db, scope, place.environmentId);
  const { node_id: nodeId } = await queries.insertDeployment(context.db, {
    id,
    organization_id: place.organizationId,
    environment_id: place.environmentId,
    cluster_id: place.clusterId,
    number,
    action,
    trigger: request.trigger,
    whole_environment: request.whole,
    snapshot,
    resolution: request.rollback?.resolution ?? null,
    requested_by: context.actor.userId,
    requested_by_name: context.actor.name,
    origin: context.actor.origin,
    automatic: request.automatic ?? false,
    kinds: kindsOf(request),
  });
  await insertServices(context, request, { id, number }, request.services);
  return { id, nodeId };
}

const kindsOf = ({ services }: DeploymentRequest): string[] => [...new Set(services.map(({ kind }) => kind))];

async function insertServices(
  context: Context,
  { place, action }: DeploymentRequest,
  { id, number }: { id: string; number: number },
  services: ServiceSnapshot[],
): Promise<void> {
  if (services.length === 0) return;
  await queries.insertDeploymentServices(
    context.db,
    services.map((service) => ({
      deployment_id: id,
      organization_id: place.organizationId,
      environment_id: place.environmentId,
      number,
      service_id: service.serviceId,
      kind: service.kind,
      name: service.name,
      icon_uri: service.iconUri,
      stage_id: service.stage.id,
      stage_name: service.stage.name,
      stage_position: service.stage.position,
      action,
      sub_action: subActionOf(action, service),
      details: json({ ...service.details, ...(service.event ? { event: service.event } : {}) }),
      state: stateOf(action, 'queued'),
    })),
  );
}

/** Joins the environment's last waiting deployment if action and services are the same and it is no rollback. */
async function joinLast(context: Context, request: DeploymentRequest, snapshot: Snapshot): Promise<Queued | undefined> {
  const scope = { organizationId: request.place.organizationId };
  const active = await queries.listActiveDeployments(context.db, scope, request.place.environmentId);
  const last = request.widens ? active.find(({ id }) => id === request.widens) : active.at(-1);
  if (
    !last ||
    last.status !== 'WAITING' ||
    last.cancel_requested_at ||
    last.action !== request.action ||
    last.trigger !== request.trigger ||
    request.rollback ||
    (request.widens !== undefined && request.widens !== last.id)
  )
    return undefined;
  if (last.whole_environment !== request.whole) return undefined;
  const before = (last.snapshot as Snapshot).services;
  if (request.action === 'RUN' && eventOfRun(before) !== eventOfRun(request.services)) return undefined;
  const covered = before.map((service) => service.serviceId);
  const added = request.services.filter(({ serviceId }) => !covered.includes(serviceId));
  if (added.length + covered.length !== request.services.length) return undefined;
  if (added.length > 0 && request.widens !== last.id) return undefined;
  const joined = await queries.joinDeployment(context.db, scope, last.id, {
    snapshot,
    requested_by: context.actor.userId,
    requested_by_name: requesters(last.requested_by_name, context.actor.name),
    origin: context.actor.origin,
    // A person who joins gets a person's priority.
    automatic: last.automatic && (request.automatic ?? false),
    kinds: kindsOf(request),
  });
  if (!joined) return undefined;
  await insertServices(context, request, last, added);
  return { id: last.id, nodeId: joined.node_id };
}

/** Longest list of names that a name is added to. */
const LONGEST_NAMES = 500;

const requesters = (present: string, added: string): string =>
  present.split(', ').includes(added) || present.length > LONGEST_NAMES ? present : `${present}, ${added}`;

/** Returns the audit event of a request: under its service if it is for just one, else under the environment. */
export function eventOf(request: Pick<DeploymentRequest, 'place' | 'whole' | 'services'>, type: EventType) {
  const { place } = request;
  const single = !request.whole && request.services.length === 1 ? request.services[0]! : undefined;
  const target = single
    ? { type: single.kind as TargetType, id: single.serviceId, name: single.name }
    : { type: 'ENVIRONMENT' as const, id: place.environmentId, name: place.environmentName };
  return {
    organizationId: place.organizationId,
    type,
    target,
    project: { id: place.projectId, name: place.projectName },
    environment: { id: place.environmentId, name: place.environmentName },
  };
}
