import { hasFact } from '#kernel/kinds.ts';
import { conflict, internal } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { takenNames } from '#platform/database/taken-name.ts';
import { audit, type SubTargetType, type TargetType } from '#platform/events/audit.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import type { CommonInput, Kind, ShownKind } from '#services/kind.ts';
import { refuseForeignAutoDeploy } from '#services/service/foreign-refs.ts';
import * as queries from '#services/service/queries.ts';
import type { ServiceTarget } from '#services/service/target.ts';

export const refuseTakenName = takenNames('service', 'service of the environment');

/** Makes the answer of a service: the common part and the kind's own. */
export const toServiceView = (context: Context, kind: ShownKind, row: queries.ServiceRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  description: row.description ?? '',
  environment: { id: row.environment_id },
  icon_uri: row.icon_uri,
  service_type: row.kind,
  ...kind.toView(context, row, row.spec),
});

/** Makes the view of a service for events, which more people read: without fields that only callers with more permissions see. */
export const toRecordedView = (context: Context, kind: ShownKind, row: queries.ServiceRow) =>
  toServiceView({ ...context, may: undefined }, kind, row);

/** Creates a service. Throws 409 if the environment has a service of that name or is being deleted. */
export async function createService(context: Context, kind: Kind, environment: EnvironmentTarget, input: CommonInput) {
  if (environment.deleting)
    throw conflict(`Environment ${environment.name} is being deleted: nothing can be created in it.`);
  const { organizationId } = environment;
  const stage = await queries.findDefaultStage(context.db, { organizationId }, environment.id, kind.defaultStage);
  const id = newId();
  const place = {
    organizationId,
    environmentId: environment.id,
    environment,
    serviceId: id,
    service: null,
    runtime: environment.runtime,
  };
  const spec = await kind.toSpec(context, place, input, null);
  refuseForeignAutoDeploy(kind, spec, null);
  const service = {
    id,
    organization_id: organizationId,
    environment_id: environment.id,
    stage_id: stage.id,
    kind: kind.kind,
    name: input.name.trim(),
    description: input.description ?? null,
    icon_uri: input.icon_uri ?? iconOf(context, kind, spec),
    ...withDerived(kind, spec),
    ...updatedBy(context),
  };
  await refuseTakenName(service.name, () => queries.insertService(context.db, service));
  const row = await findRow(context, organizationId, service.id);
  const view = toServiceView(context, kind, row);
  await audit(context, {
    organizationId,
    type: 'CREATE',
    ...placeOfService(row),
    after: toRecordedView(context, kind, row),
  });
  return view;
}

/** Returns the URL of a service's default icon. */
export const iconOf = (context: Pick<Context, 'settings'>, kind: Kind, spec: unknown): string =>
  `${context.settings.iconPrefix}${kind.icon?.(spec) ?? kind.path}`;

/** Changes a service's configuration; absent fields keep their value. */
export async function editService(context: Context, kind: Kind, service: ServiceTarget, input: Partial<CommonInput>) {
  refuseDeleting(service);
  const { organizationId, environmentId } = service;
  const place = { organizationId, environmentId, serviceId: service.id, service, runtime: service.cluster_runtime };
  const spec = await kind.toSpec(context, place, input, service.spec);
  refuseForeignAutoDeploy(kind, spec, service.spec);
  const hasOwnIcon = service.icon_uri !== iconOf(context, kind, service.spec);
  return change(context, kind, service, {
    name: input.name?.trim() ?? service.name,
    description: input.description === undefined ? service.description : input.description,
    icon_uri: input.icon_uri ?? (hasOwnIcon ? service.icon_uri : iconOf(context, kind, spec)),
    ...withDerived(kind, spec),
    ...updatedBy(context),
  });
}

/** Stores a configuration for a call that changes nothing else. */
export const changeSpec = (context: Context, kind: Kind, service: queries.ServiceRow, spec: unknown) =>
  change(context, kind, service, {
    name: service.name,
    description: service.description,
    icon_uri: service.icon_uri,
    ...withDerived(kind, spec),
    ...updatedBy(context),
  });

/** Columns that record who changes a service. */
export const updatedBy = ({ actor }: Pick<Context, 'actor'>) => ({
  last_updated_by: actor.userId,
  last_updated_with: actor.tokenId ?? null,
});

/** Returns a configuration with its derived columns: required runtime features, and the details that histories show. */
export const withDerived = (kind: Kind, spec: unknown) => ({
  spec,
  requires: kind.requires?.(spec) ?? [],
  details: kind.details?.(spec) ?? {},
});

async function change(context: Context, kind: Kind, service: queries.ServiceRow, change: queries.ServiceChange) {
  const organizationId = service.organization_id;
  await refuseTakenName(change.name, () => queries.updateService(context.db, { organizationId }, service.id, change));
  const row = await findRow(context, organizationId, service.id);
  const view = toServiceView(context, kind, row);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    ...placeOfService(row),
    before: toRecordedView(context, kind, service),
    after: toRecordedView(context, kind, row),
  });
  return view;
}

/** Throws 409 if the service is being deleted: only DELETE is accepted then (docs/contributing/rules.md 16). */
export function refuseDeleting(service: { name: string; deleting: boolean }): void {
  if (service.deleting) throw conflict(`${service.name} is being deleted: only DELETE is possible.`);
}

/** Names a service in an event. An Argo CD app is named by its environment (docs/contributing/rules.md 42). */
export const placeOfService = (row: queries.ServiceRow, sub?: SubTargetType) => ({
  target: {
    type: hasFact(row.kind, 'audited') ? row.kind : ('ENVIRONMENT' as TargetType),
    id: row.id,
    name: row.name,
    ...(sub ? { sub } : {}),
  },
  project: { id: row.project_id, name: row.project_name },
  environment: { id: row.environment_id, name: row.environment_name },
});

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findServiceById(context.db, [organizationId], id);
  if (!row) throw internal(`Service ${id} is gone within its own transaction.`);
  return row;
}
