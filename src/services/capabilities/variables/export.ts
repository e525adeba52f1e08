import type { Context } from '#platform/context.ts';
import { mountPathOf, sourceOf, typeOf, type VariableType } from '#deployments/model/variables.ts';
import { findSurroundings } from '#services/capabilities/variables/built-ins.ts';
import { ofBuiltIn, ofRow } from '#services/capabilities/variables/line.ts';
import { listVisible } from '#services/capabilities/variables/queries.ts';

/** Variable or secret in the form in which an export writes it. */
export interface WrittenVariable {
  /** Id of the environment or service that has the variable. */
  parentId: string;
  key: string;
  type: VariableType;
  isSecret: boolean;
  /** Null for secrets and aliases. */
  value: string | null;
  mountPath: string | null;
  description: string | null;
  /** Key of the alias's source; null unless it is an alias. */
  aliasOf: string | null;
  external: { access: string; name: string } | null;
}

/**
 * Lists the own variables of an environment and of services in it, in creation order. Inherited variables and values of secrets are left
 * out.
 */
export async function listWrittenVariables(
  context: Context,
  environment: { organizationId: string; projectId: string; id: string },
  serviceIds: string[],
): Promise<WrittenVariable[]> {
  const { organizationId, projectId, id: environmentId } = environment;
  const rows = await listVisible(context.db, { organizationId }, { projectId, environmentId, serviceIds });
  const surroundings = await findSurroundings(context, { organizationId }, projectId, environmentId);
  const builtIns = (surroundings?.builtIns ?? []).map((one) => ofBuiltIn(one, context.settings.ownedBy));
  const entries = rows.map(ofRow);
  const byId = new Map([...builtIns, ...entries].map((entry) => [entry.id, entry]));
  return entries
    .filter((entry) => entry.parentId !== null && entry.parentId !== projectId)
    .map((entry) => ({
      parentId: entry.parentId!,
      key: entry.key,
      type: typeOf(entry),
      isSecret: entry.isSecret ?? false,
      value: entry.aliases || entry.isSecret ? null : entry.value,
      mountPath: mountPathOf(entry, byId) ?? null,
      description: entry.description,
      aliasOf: entry.aliases ? (sourceOf(entry, byId)?.key ?? null) : null,
      external: entry.external ?? null,
    }));
}
