import { conflict, invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { normalizePath } from '#services/capabilities/service/deployment-restrictions/affected.ts';
import * as queries from '#services/capabilities/service/deployment-restrictions/queries.ts';
import type { DeploymentRestrictionInput } from '#services/capabilities/service/deployment-restrictions/schema.ts';
import { placeOfService, refuseDeleting } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/** A restriction as it is answered. */
export const toRestrictionView = (row: queries.RestrictionRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  mode: row.mode,
  type: row.type,
  value: row.value,
});

/** Restricts which pushes deploy a service. 409 if it has the same one already. */
export async function createRestriction(context: Context, service: ServiceTarget, input: DeploymentRestrictionInput) {
  refuseDeleting(service);
  const restriction = {
    id: newId(),
    organization_id: service.organizationId,
    service_id: service.id,
    ...toChange(input),
  };
  const [row] = await refuseTwice(service, restriction.value, () =>
    queries.insertRestrictions(context.db, [restriction]),
  );
  const view = toRestrictionView(row!);
  await tell(context, service, { type: 'CREATE', after: view });
  return view;
}

export async function editRestriction(
  context: Context,
  service: ServiceTarget,
  id: string,
  input: DeploymentRestrictionInput,
) {
  refuseDeleting(service);
  const present = await findRestriction(context, service, id);
  const change = toChange(input);
  const row = await refuseTwice(service, change.value, () =>
    queries.updateRestriction(context.db, service, id, change),
  );
  const view = toRestrictionView(row);
  await tell(context, service, { type: 'UPDATE', before: toRestrictionView(present), after: view });
  return view;
}

export async function removeRestriction(context: Context, service: ServiceTarget, id: string): Promise<void> {
  const present = await findRestriction(context, service, id);
  await queries.deleteRestriction(context.db, service, id);
  await tell(context, service, { type: 'DELETE', before: toRestrictionView(present) });
}

/** The restriction of a path. 404 unless it is of this service. */
export async function findRestriction(context: Context, service: ServiceTarget, id: string) {
  const row = await queries.findRestriction(context.db, service, service.id, id);
  if (!row) throw notFound('DeploymentRestriction');
  return row;
}

function toChange({ mode, type, value }: DeploymentRestrictionInput) {
  if (value.split('/').includes('..') || value.includes('\0'))
    throw invalidField('value', 'must be a path within the repository: no ".."');
  return { mode, type, value: normalizePath(value) || '/' };
}

/** A restriction says when to deploy, not what: the service's version stays. */
const tell = (
  context: Context,
  service: ServiceTarget,
  entry: { type: 'CREATE' | 'UPDATE' | 'DELETE'; before?: unknown; after?: unknown },
) => audit(context, { organizationId: service.organizationId, ...placeOfService(service, 'CONFIG'), ...entry });

async function refuseTwice<T>(service: ServiceTarget, value: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (brokenConstraint(error) === 'deployment_restriction_value')
      throw conflict(`${service.name} has this restriction for ${value} already.`);
    throw error;
  }
}
