import { conflict } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { OUTBOX_CHANNEL, outboxInsert } from '#platform/events/outbox.ts';
import { sql } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { CANCELLATIONS } from '#deployments/model/channels.ts';
import type { DeploymentAction } from '#deployments/model/states.ts';
import { outboxEventOf } from '#deployments/outbox-event.ts';
import * as queries from '#deployments/queries.ts';

type Scope = { organizationId: string };

/**
 * Cancels one deployment: at once while it waits; what runs comes to a safe point first. With `force` it ends at once whatever runs: the worker
 * loses its claim and stops, the services that it was at are marked dirty, and nothing else begins in the environment until the worker is known
 * to have stopped (docs/contributing/engine.md, *The queue*). 409 when it has ended already.
 */
export async function cancelDeployment(
  context: Context,
  scope: Scope,
  deployment: queries.DeploymentRow,
  force = false,
): Promise<void> {
  if (deployment.status === 'ENDED') throw conflict('There is nothing to cancel: the deployment has ended.');
  const action = deployment.action as DeploymentAction;
  const { id } = deployment;
  await queries.requestCancel(context.db, scope, id, force);
  const moved = await queries.moveServices(context.db, scope, id, action, 'cancel').execute();
  const atWork = moved.filter((service) => service.state === 'CANCELING').map((service) => service.service_id);
  const over = moved.filter((service) => service.state === 'CANCELED');
  const atOnce = force || deployment.status === 'WAITING';
  if (atOnce) {
    const cut = await queries.moveServices(context.db, scope, id, action, 'cancelled').execute();
    atWork.push(...cut.map((service) => service.service_id));
    over.push(...cut);
    if (atWork.length > 0) await queries.markDirty(context.db, scope, atWork);
    await queries.endOpenSteps(context.db, scope, id, 'CANCEL').execute();
    await queries.endCancelled(context.db, scope, id, deployment.status !== 'WAITING');
    if (action === 'DELETE') await queries.revive(context.db, scope, deployment);
  }
  await tellCancelled(context, scope, deployment, over);
  context.afterCommit(() => context.notify(CANCELLATIONS, id));
}

/** Tells webhooks of the services whose request is over without having run; for the others, the end of their work tells them. */
async function tellCancelled(
  context: Context,
  scope: Scope,
  deployment: queries.DeploymentRow,
  services: { service_id: string; name: string; kind: string; state: string }[],
): Promise<void> {
  if (services.length === 0) return;
  const names = await queries.findNames(context.db, scope, deployment.environment_id);
  const event = outboxEventOf('DEPLOYMENT_CANCELLED', deployment, names);
  const each = services.map(({ service_id: id, name, kind, state }) => ({
    service: { id, name, type: kind },
    status: state,
  }));
  const payload = sql`${json(event)}::jsonb || each`;
  const from = sql`jsonb_array_elements(${json(each)}::jsonb) each`;
  await outboxInsert(scope.organizationId, 'deployment', payload, from).execute(context.db);
  context.afterCommit(() => context.notify(OUTBOX_CHANNEL));
}

/** Cancels what is under way in an environment, the running request and those that wait. 409 with nothing under way. */
export async function cancelEnvironment(
  context: Context,
  environment: { id: string; name: string; organizationId: string; projectId: string; project_name: string },
  force: boolean,
): Promise<void> {
  const active = await queries.listActiveDeployments(context.db, environment, environment.id);
  if (active.length === 0) throw conflict(`There is nothing to cancel in ${environment.name}.`);
  for (const deployment of active) await cancelDeployment(context, environment, deployment, force);
  await audit(context, {
    organizationId: environment.organizationId,
    type: 'TRIGGER_CANCEL',
    target: { type: 'ENVIRONMENT', id: environment.id, name: environment.name },
    project: { id: environment.projectId, name: environment.project_name },
    environment: { id: environment.id, name: environment.name },
  });
}

/** Cancels requests before a delete: each one that has nothing but covered services, and the running one that has any of them. */
export async function cancelCovered(
  context: Context,
  place: { organizationId: string; environmentId: string },
  covered: Set<string>,
): Promise<void> {
  const active = await queries.listActiveDeployments(context.db, place, place.environmentId);
  const services = await queries.listServicesOf(
    context.db,
    place,
    active.map((deployment) => deployment.id),
  );
  for (const deployment of active) {
    const own = services.filter((service) => service.deployment_id === deployment.id);
    const touches = own.some((service) => covered.has(service.service_id));
    const within = own.every((service) => covered.has(service.service_id));
    if (deployment.action === 'DELETE' || !touches) continue;
    if (within || deployment.status !== 'WAITING') await cancelDeployment(context, place, deployment);
  }
}
