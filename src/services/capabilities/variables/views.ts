import { hasFact } from '#kernel/kinds.ts';
import { mountPathOf, sourceOf, typeOf, valueHolderOf } from '#deployments/model/variables.ts';
import type { Entry } from '#services/capabilities/variables/line.ts';

/** Entry with the entries that its sources are found in. */
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
 * Returns the value for a view. An alias shows the key of its source, which existing clients compare with the value that they sent; the
 * source's own value is in `aliased_variable`. A secret shows none.
 */
function shownValue(entry: Entry, byId: ReadonlyMap<string, Entry>): string | null {
  if (entry.isSecret) return null;
  return entry.aliases === undefined ? (entry.value ?? null) : (sourceOf(entry, byId)?.key ?? null);
}

/** Returns the view of a source within the view of its override or alias. */
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

/** Returns the view of `/…/environmentVariable` (docs/contributing/rules.md, *Variable*). */
export function toVariableView(found: Found) {
  const { overridden, aliased } = sourcesOf(found);
  return {
    ...common(found),
    value: shownValue(found.entry, found.byId) ?? '',
    overridden_variable: overridden,
    aliased_variable: aliased,
  };
}

/** Returns the view of `/…/secret` (docs/contributing/rules.md, *Secret*), without the value. */
export function toSecretView(found: Found) {
  const { overridden, aliased } = sourcesOf(found);
  return { ...common(found), overridden_secret: overridden, aliased_secret: aliased };
}

/** Returns the view of `/variable`, which audit events show as well. */
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
