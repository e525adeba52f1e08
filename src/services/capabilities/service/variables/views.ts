import { hasFact } from '#kernel/kinds.ts';
import { mountPathOf, sourceOf, typeOf, valueHolderOf } from '#deployments/model/variables.ts';
import type { Entry } from '#services/capabilities/service/variables/line.ts';

/** An entry with everything that its sources are found in. */
export interface Found {
  entry: Entry;
  byId: ReadonlyMap<string, Entry>;
}

/** Returns the fields that all three views share. */
const common = ({ entry, byId }: Found) => ({
  id: entry.id,
  created_at: entry.createdAt.toISOString(),
  updated_at: entry.updatedAt.toISOString(),
  key: entry.key,
  mount_path: mountPathOf(entry, byId) ?? null,
  ...(entry.description === null ? {} : { description: entry.description }),
  enable_interpolation_in_file: entry.interpolateFile ?? false,
  scope: entry.scope,
  variable_type: typeOf(entry),
  ...(entry.service
    ? {
        service_id: entry.service.id,
        service_name: entry.service.name,
        // The set of the field has fewer kinds than there are (docs/contributing/rules.md 29).
        ...(hasFact(entry.service.kind, 'linked') ? { service_type: entry.service.kind } : {}),
      }
    : {}),
  owned_by: entry.ownedBy,
});

/**
 * The value that is shown: of an alias the key of its source, which existing clients compare with what they sent (the source's own value
 * stands in `aliased_variable`); of a secret none.
 */
function shownValue(entry: Entry, byId: ReadonlyMap<string, Entry>): string | null {
  if (entry.isSecret) return null;
  return entry.aliases === undefined ? (entry.value ?? null) : (sourceOf(entry, byId)?.key ?? null);
}

/** A record that others are of, as it is answered within those. */
const toSourceView = (found: Found) => {
  const { id, key, mount_path, scope, variable_type, description, enable_interpolation_in_file } = common(found);
  return {
    id,
    key,
    value: shownValue(found.entry, found.byId),
    mount_path,
    scope,
    variable_type,
    description: description ?? '',
    enable_interpolation_in_file,
  };
};

const sourcesOf = ({ entry, byId }: Found) => {
  const source = sourceOf(entry, byId);
  const view = source ? toSourceView({ entry: source, byId }) : null;
  return { overridden: entry.overrides ? view : null, aliased: entry.aliases ? view : null };
};

/** As `/…/environmentVariable` answers it (docs/contributing/rules.md, *Variable*). */
export function toVariableView(found: Found) {
  const { overridden, aliased } = sourcesOf(found);
  return {
    ...common(found),
    value: shownValue(found.entry, found.byId) ?? '',
    overridden_variable: overridden,
    aliased_variable: aliased,
  };
}

/** As `/…/secret` answers it (docs/contributing/rules.md, *Secret*): without the value. */
export function toSecretView(found: Found) {
  const { overridden, aliased } = sourcesOf(found);
  return { ...common(found), overridden_secret: overridden, aliased_secret: aliased };
}

/** As `/variable` answers variables and secrets, and as events show them. */
export function toMainView(found: Found) {
  const { overridden, aliased } = sourcesOf(found);
  const { entry, byId } = found;
  return {
    ...common(found),
    description: entry.description ?? '',
    value: shownValue(entry, byId),
    is_secret: entry.isSecret ?? false,
    secret_manager_access_id: valueHolderOf(entry, byId)?.external?.access ?? null,
    overridden_variable: overridden,
    aliased_variable: aliased,
  };
}
