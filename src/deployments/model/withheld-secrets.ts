import { sourceOf, valueHolderOf, type FrozenVariable, type VariableDefinition } from '#deployments/model/variables.ts';

/**
 * Marks the records that hold a secret, and takes the secret away: their keys get no value, and neither does what names them
 * (docs/decisions/0113-a-fork-runs-what-was-approved-and-sees-no-secret.md). Built-in records stay, because those with credentials are of databases
 * of the environment itself. Needs all records that a service sees.
 */
export function withholdSecrets<R extends VariableDefinition & Pick<FrozenVariable, 'secret' | 'sealed'>>(
  records: readonly R[],
): R[] {
  const byId = new Map(records.map((record) => [record.id, record]));
  return records.map((record) => (isSecretOf(record, byId) ? withoutValue(record) : record));
}

/** Tells whether a record is a secret that people gave, or overrides one or is an alias of one. */
function isSecretOf<R extends VariableDefinition>(record: R, byId: ReadonlyMap<string, R>): boolean {
  if (valueHolderOf(record, byId)?.scope === 'BUILT_IN') return false;
  const seen = new Set<R>();
  for (let at: R | undefined = record; at && !seen.has(at); at = sourceOf(at, byId)) {
    if (at.isSecret || at.external) return true;
    seen.add(at);
  }
  return false;
}

function withoutValue<R extends VariableDefinition & Pick<FrozenVariable, 'secret' | 'sealed'>>(record: R): R {
  const { secret: _secret, sealed: _sealed, external: _external, ...rest } = record;
  return { ...rest, value: '', isSecret: true, isWithheld: true } as unknown as R;
}
