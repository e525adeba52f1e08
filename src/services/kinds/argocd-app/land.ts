import { newId, shortId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import type { Observed } from '#deployments/index.ts';
import type { ArgoCdApplication } from '#resources/argo-cd/index.ts';
import { removeApps } from '#services/kinds/argocd-app/forget.ts';
import { Places, type Place } from '#services/kinds/argocd-app/place.ts';
import * as queries from '#services/kinds/argocd-app/queries.ts';
import { sameAs, toAppSpec, toObserved, type ArgoCdAppSpec } from '#services/kinds/argocd-app/spec.ts';
import { findServiceById, type ServiceRow } from '#services/service/queries.ts';
import { placeOfService } from '#services/service/service.ts';

/** App and its target cluster. */
export interface Landing {
  app: ArgoCdApplication;
  /** Name of the cluster in Argo CD; `clusterId` is the id of the same cluster here. */
  destination: string;
  clusterId: string;
}

/** App with its row, if it has one, and its environment and stage. */
interface Wanted extends Landing {
  spec: ArgoCdAppSpec;
  row: ServiceRow | undefined;
  id: string;
  place: Place;
}

const keyOf = (spec: Pick<ArgoCdAppSpec, 'app_name' | 'app_namespace'>): string =>
  `${spec.app_namespace}/${spec.app_name}`;

/**
 * Reconciles the services that represent apps of an Argo CD with the list, in one transaction: each in its environment; those that are not
 * in the list are removed. The same list again changes nothing.
 */
export async function landApps(context: Context, scope: Scope, argoCdId: string, landings: Landing[]): Promise<void> {
  const rows = await queries.listApps(context.db, scope, argoCdId);
  const byKey = new Map(rows.map((row) => [keyOf(row.spec as ArgoCdAppSpec), row]));
  const specs = landings.map((landing) => toAppSpec(landing.app, landing.destination));
  const kept = new Set(specs.map(keyOf));
  await removeApps(
    context,
    scope,
    rows.filter((row) => !kept.has(keyOf(row.spec as ArgoCdAppSpec))),
  );
  const places = new Places(context, scope);
  const wanted: Wanted[] = [];
  for (const [index, landing] of landings.entries()) {
    const spec = specs[index]!;
    const row = byKey.get(keyOf(spec));
    const place = await places.of(landing.clusterId, spec.namespace);
    // While the environment is being deleted, the app has none: a later read chooses another.
    if (place) wanted.push({ ...landing, spec, row, id: row?.id ?? newId(), place });
  }
  const nameOf = await chooseNames(context, scope, wanted);
  for (const one of wanted) await land(context, scope, argoCdId, one, nameOf(one));
}

async function land(context: Context, scope: Scope, argoCdId: string, one: Wanted, name: string): Promise<void> {
  const { row, spec, place, id } = one;
  const observed = toObserved(one.app, (row?.observed as Observed | undefined) ?? null);
  if (!row) {
    await queries.insertApp(context.db, {
      id,
      organization_id: scope.organizationId,
      environment_id: place.environmentId,
      stage_id: place.stageId,
      argo_cd_id: argoCdId,
      name,
      icon_uri: `${context.settings.iconPrefix}argocd`,
      spec,
      observed,
    });
    return tell(context, scope, id, undefined);
  }
  if (row.environment_id === place.environmentId && row.name === name && sameAs(row.spec, spec)) {
    if (!sameAs(row.observed, observed)) await queries.updateApp(context.db, scope, id, { observed });
    return;
  }
  const moved =
    row.environment_id === place.environmentId ? {} : { environment_id: place.environmentId, stage_id: place.stageId };
  await queries.updateApp(context.db, scope, id, { observed, spec, name, ...moved });
  return tell(context, scope, id, row);
}

/** Writes an audit event when an app is created or moved. Its states are left out: Argo CD reports them. */
async function tell(context: Context, scope: Scope, id: string, before: ServiceRow | undefined): Promise<void> {
  const after = (await findServiceById(context.db, [scope.organizationId], id))!;
  const stateOf = (row: ServiceRow) => ({
    id,
    name: row.name,
    environment: row.environment_id,
    ...(row.spec as object),
  });
  await audit(context, {
    organizationId: scope.organizationId,
    type: before ? 'UPDATE' : 'CREATE',
    ...placeOfService(after),
    ...(before ? { before: stateOf(before) } : {}),
    after: stateOf(after),
  });
}

/**
 * Chooses the service names of apps. An app keeps its own name unless another service of the environment has it: two Argo CDs may lead to
 * one cluster, and names of services are compared without case. Then the first digits of the id are appended. A name that a service already
 * has stays, and a name that another app is just giving up is not free yet, so that the rows can be written in any order.
 */
async function chooseNames(context: Context, scope: Scope, wanted: Wanted[]): Promise<(one: Wanted) => string> {
  const environmentIds = [...new Set(wanted.map((one) => one.place.environmentId))];
  const present = await queries.listNames(context.db, scope, environmentIds);
  const slot = (environmentId: string, name: string) => `${environmentId}/${name.toLowerCase()}`;
  const owners = new Map(present.map((row) => [slot(row.environment_id, row.name), row.id]));
  return ({ id, app, place, row }) => {
    const other = `${app.name}-${shortId(id)}`;
    if (row?.environment_id === place.environmentId && row.name === other) return other;
    const own = slot(place.environmentId, app.name);
    if (!owners.has(own)) owners.set(own, id);
    return owners.get(own) === id ? app.name : other;
  };
}
