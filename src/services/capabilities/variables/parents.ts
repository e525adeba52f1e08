import { invalidField, notFound } from '#kernel/errors.ts';
import type { Action } from '#platform/access/actions.ts';
import type { Call, Target } from '#platform/http/route.ts';
import type { Database } from '#platform/database/index.ts';
import { ownersOfBuiltIn } from '#deployments/model/built-in-variables.ts';
import type { RecordScope } from '#deployments/model/variables.ts';
import { placeOf, type Place } from '#services/capabilities/variables/line.ts';
import { findHolderOfVariable, listOwners } from '#services/capabilities/variables/queries.ts';
import { environmentHolder, projectHolder, type HolderTarget, type VariableScope } from '#services/service/holder.ts';
import { serviceTarget } from '#services/service/target.ts';

/** Holder of the variable that `/variable/{variableId}` names. */
export type VariableTarget = HolderTarget & { scope: VariableScope };

/** Returns the target that finds the holder of variables of a scope. */
function targetOf(scope: Exclude<RecordScope, 'BUILT_IN'>): Target<HolderTarget> {
  if (scope === 'PROJECT') return projectHolder.target;
  if (scope === 'ENVIRONMENT') return environmentHolder.target;
  return serviceTarget('serviceId', 'Service', scope);
}

/**
 * Target of a path with a variable or secret, on any holder. A built-in is found through the thing that it describes. Writes lock the row
 * of the holder, as every write of its variables does.
 */
export const variableTarget: Target<VariableTarget> = {
  name: 'Variable',
  param: 'variableId',
  find: async (db, id, organizationIds, { lock }) => {
    const holder = (await findStored(db, id, organizationIds)) ?? (await findOwner(db, id, organizationIds));
    if (!holder) return undefined;
    const target = await holder.target.find(db, holder.id, organizationIds, { lock });
    return target && { ...target, scope: holder.scope };
  },
};

/**
 * Target of a path with the source of an override or alias. The source does not change, so its holder is not locked. Locks are taken from
 * services up to projects.
 */
export const sourceTarget: Target<VariableTarget> = {
  ...variableTarget,
  find: (db, id, organizationIds) => variableTarget.find(db, id, organizationIds, { lock: false }),
};

interface FoundHolder {
  target: Target<HolderTarget>;
  id: string;
  scope: VariableScope;
}

async function findStored(db: Database, id: string, organizationIds: string[]): Promise<FoundHolder | undefined> {
  const row = await findHolderOfVariable(db, organizationIds, id);
  if (!row) return undefined;
  const scope = row.scope as VariableScope;
  return { target: targetOf(scope), id: (row.project_id ?? row.environment_id ?? row.service_id)!, scope };
}

async function findOwner(db: Database, id: string, organizationIds: string[]): Promise<FoundHolder | undefined> {
  const [owner] = await listOwners(db, organizationIds, ownersOfBuiltIn(id));
  if (!owner) return undefined;
  if (owner.type === 'project') return { target: projectHolder.target, id: owner.id, scope: 'PROJECT' };
  if (owner.type === 'environment') return { target: environmentHolder.target, id: owner.id, scope: 'ENVIRONMENT' };
  const target = serviceTarget('serviceId', 'Service');
  return { target, id: owner.id, scope: owner.kind as VariableScope };
}

/** Reference to a holder in a request. An unknown id is 400 in a body and 404 in a query (docs/contributing/rules.md 7). */
export interface Named {
  scope: RecordScope;
  id: string;
  fields: { scope: string; id: string };
  in: 'body' | 'query';
}

/**
 * Finds the project, environment or service that a body or query names by scope and id. Throws 403 unless the caller may do the action
 * there.
 */
export async function findParent(call: Call<unknown>, named: Named, action: Action): Promise<Place> {
  const { scope, id, fields } = named;
  if (scope === 'BUILT_IN')
    throw invalidField(
      fields.scope,
      'must be PROJECT, ENVIRONMENT or the kind of a service: nothing stands in BUILT_IN',
    );
  const organizationIds = call.principal.grants.map((grant) => grant.organizationId);
  const target = await targetOf(scope).find(call.db, id, organizationIds, { lock: action === 'variable.edit' });
  if (!target && named.in === 'query') throw notFound('Parent');
  if (!target) throw invalidField(fields.id, `names nothing of scope ${scope} in your organizations`);
  call.require(action, target);
  return placeOf(target, scope);
}
