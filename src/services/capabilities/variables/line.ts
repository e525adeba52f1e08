import { internal } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { SealedValue } from '#deployments/model/built-in-variables.ts';
import type { RecordScope, VariableDefinition } from '#deployments/model/variables.ts';
import { findSurroundings, type BuiltInEntry, type Surroundings } from '#services/capabilities/variables/built-ins.ts';
import { listVisible, type VariableRow } from '#services/capabilities/variables/queries.ts';
import type { HolderTarget, ServiceKind, VariableScope } from '#services/service/holder.ts';

/** A holder of variables: a project, an environment or a service. */
export interface Place {
  organizationId: string;
  id: string;
  name: string;
  scope: VariableScope;
  projectId: string;
  environmentId?: string;
  serviceId?: string;
  deleting: boolean;
}

/** Returns the place of a holder's target. */
export const placeOf = (target: HolderTarget, scope: VariableScope): Place => ({
  organizationId: target.organizationId,
  id: target.id,
  name: target.name,
  scope,
  projectId: target.projectId,
  ...(target.environmentId ? { environmentId: target.environmentId } : {}),
  ...(target.serviceId ? { serviceId: target.serviceId } : {}),
  deleting: target.deleting,
});

/** A variable or secret that is seen from a place: stored or built-in. */
export interface Entry extends VariableDefinition {
  /** Plain value of its own, or the upstream name of an external secret; null for secrets and aliases. */
  value: string | null;
  /** Number of the present value; secrets only. */
  secretVersion?: number;
  sealed?: SealedValue;
  description: string | null;
  ownedBy: string;
  createdAt: Date;
  updatedAt: Date;
  /** Id of the project, environment or service that has the variable; null for built-ins. */
  parentId: string | null;
  /** Service that has the variable, or that a built-in describes. */
  service: { id: string; name: string; kind: ServiceKind } | null;
}

/** Variables that are visible from a place: its own, inherited and built-in ones. */
export interface Line extends Surroundings {
  place: Place;
  /** In creation order. */
  entries: Entry[];
  byId: ReadonlyMap<string, Entry>;
}

/**
 * Reads the variables that are visible from a place. With `of` only the stored variable with that id and its sources, and the built-ins.
 */
export async function loadLine(context: Context, place: Place, of?: string): Promise<Line> {
  const { organizationId, projectId, environmentId, serviceId } = place;
  const scope = { organizationId };
  const surroundings = await findSurroundings(context, scope, projectId, environmentId);
  if (!surroundings) throw internal(`Project ${projectId} is gone within its own request.`);
  const serviceIds = serviceId ? [serviceId] : [];
  const rows = await listVisible(context.db, scope, { projectId, environmentId, serviceIds }, of);
  const builtIns = surroundings.builtIns.map((one) => ofBuiltIn(one, context.settings.ownedBy));
  // Rows come in creation order, which is finer than a Date: equals stay as they are.
  const entries = [...builtIns, ...rows.map(ofRow)].sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
  return { ...surroundings, place, entries, byId: new Map(entries.map((entry) => [entry.id, entry])) };
}

export function ofRow(row: VariableRow): Entry {
  const overrides = row.overridden_id ?? row.overridden_built_in;
  const aliases = row.aliased_id ?? row.aliased_built_in;
  return {
    id: row.id,
    key: row.key,
    scope: row.scope as RecordScope,
    ...(row.is_secret ? { isSecret: true } : {}),
    ...(row.mount_path === null ? {} : { mountPath: row.mount_path }),
    ...(row.enable_interpolation_in_file ? { interpolateFile: true } : {}),
    ...(overrides ? { overrides } : {}),
    ...(aliases ? { aliases } : {}),
    ...(row.secret_manager_access_id
      ? {
          external: {
            access: row.secret_manager_access_id,
            name: row.value!,
            ...(row.access_chosen_by ? { chosenBy: row.access_chosen_by } : {}),
            ...(row.access_chosen_with ? { chosenWith: row.access_chosen_with } : {}),
          },
        }
      : {}),
    value: row.value,
    ...(row.is_secret && !aliases ? { secretVersion: row.value_version } : {}),
    description: row.description,
    ownedBy: row.owned_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    parentId: row.service_id ?? row.environment_id ?? row.project_id,
    service: row.service_id
      ? { id: row.service_id, name: row.service_name!, kind: row.service_kind as ServiceKind }
      : null,
  };
}

export const ofBuiltIn = (one: BuiltInEntry, ownedBy: string): Entry => ({
  id: one.id,
  key: one.key,
  scope: 'BUILT_IN',
  ...(one.sealed ? { isSecret: true, sealed: one.sealed } : {}),
  value: one.value,
  description: null,
  ownedBy,
  createdAt: one.createdAt,
  updatedAt: one.createdAt,
  parentId: null,
  service: one.service,
});
