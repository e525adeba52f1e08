import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import type { FrozenVariable, VariableDefinition, VariableRecord } from '#deployments/model/variables.ts';
import { findEnvironmentSurroundings } from '#services/capabilities/variables/built-ins.ts';
import { ofBuiltIn, ofRow, type Entry } from '#services/capabilities/variables/line.ts';
import { listVisible } from '#services/capabilities/variables/queries.ts';
import { listSecretVersions } from '#services/capabilities/variables/secret-queries.ts';
import { openSealed, openSecrets } from '#services/capabilities/variables/secrets.ts';

/** Frozen variables: the shared ones of an environment, and those of each service. */
export interface FrozenVariables {
  shared: FrozenVariable[];
  own: Map<string, FrozenVariable[]>;
}

/**
 * Freezes the variables that services of an environment see, as snapshots keep them: unexpanded, secrets by version, built-ins included.
 * Takes two statements for all services. Reads no secret.
 */
export async function freezeVariables(
  context: Context,
  scope: Scope,
  environmentId: string,
  serviceIds: string[],
): Promise<FrozenVariables> {
  const surroundings = await findEnvironmentSurroundings(context, scope, environmentId);
  if (!surroundings) return { shared: [], own: new Map() };
  const lineage = { projectId: surroundings.project.id, environmentId, serviceIds };
  const rows = await listVisible(context.db, scope, lineage);
  const shared = [
    ...surroundings.builtIns.map((one) => freeze(ofBuiltIn(one, ''))),
    ...rows.filter((row) => row.service_id === null).map((row) => freeze(ofRow(row))),
  ];
  const own = new Map<string, FrozenVariable[]>(serviceIds.map((id) => [id, []]));
  for (const row of rows) if (row.service_id !== null) own.get(row.service_id)!.push(freeze(ofRow(row)));
  return { shared, own };
}

/** Returns the fields of an entry that the rules of variables need. */
function definitionOf(entry: VariableDefinition): VariableDefinition {
  const { id, key, scope, isSecret, mountPath, interpolateFile, overrides, aliases, external, isWithheld } = entry;
  return { id, key, scope, isSecret, mountPath, interpolateFile, overrides, aliases, external, isWithheld };
}

/** Freezes an entry for a snapshot. Undefined fields are left out when it is written as JSON. */
export const freeze = (entry: Entry): FrozenVariable => ({
  ...definitionOf(entry),
  ...(entry.value === null || entry.external ? {} : { value: entry.value }),
  ...(entry.secretVersion === undefined ? {} : { secret: { id: entry.id, version: entry.secretVersion } }),
  ...(entry.sealed ? { sealed: entry.sealed } : {}),
});

/** Returns frozen variables with their values: secrets are decrypted in the frozen version, external secrets have none. */
export async function thawVariables(
  context: Context,
  organizationId: string,
  frozen: FrozenVariable[],
): Promise<VariableRecord[]> {
  const secrets = frozen.flatMap((one) => one.secret ?? []);
  const valueOf = await openSecrets(context, organizationId, secrets);
  const records: VariableRecord[] = [];
  for (const one of frozen) {
    const value = one.secret
      ? valueOf(one.secret)
      : one.sealed
        ? await openSealed(context, organizationId, one.sealed)
        : (one.value ?? null);
    records.push({ ...definitionOf(one), value });
  }
  return records;
}

/** Creates a `thawVariables` that thaws each list once: all services of a deployment share a list. */
export function createThaw(): typeof thawVariables {
  const thawed = new WeakMap<FrozenVariable[], Promise<VariableRecord[]>>();
  return (context, organizationId, frozen) => {
    const present = thawed.get(frozen);
    if (present) return present;
    const records = thawVariables(context, organizationId, frozen);
    thawed.set(frozen, records);
    records.catch(() => thawed.delete(frozen));
    return records;
  };
}

/** Lists the keys of frozen secrets whose values are no longer kept. Their snapshot cannot be deployed again. */
export async function listLostSecrets(context: Context, scope: Scope, frozen: FrozenVariable[]): Promise<string[]> {
  const named = frozen.flatMap((one) => (one.secret ? [{ key: one.key, ...one.secret }] : []));
  const kept = await listSecretVersions(context.db, scope, named);
  const isKept = new Set(kept.map((one) => `${one.variable_id}/${one.version}`));
  return [...new Set(named.filter((one) => !isKept.has(`${one.id}/${one.version}`)).map((one) => one.key))].sort();
}
