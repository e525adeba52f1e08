import type { AppError } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { sourceOf, type RecordScope } from '#deployments/model/variables.ts';
import { tell, touchHolder } from '#services/capabilities/variables/changes.ts';
import { accessRefusal, chooserOf, choosesSecret, newChooser } from '#services/capabilities/variables/external.ts';
import { loadLine, type Entry, type Line, type Place } from '#services/capabilities/variables/line.ts';
import { insertVariables, updateVariables, type NewVariable } from '#services/capabilities/variables/queries.ts';
import { wrongKey, wrongValue } from '#services/capabilities/variables/rules.ts';
import type { ImportInput } from '#services/capabilities/variables/schema.ts';
import { sealSecrets, type SecretValue } from '#services/capabilities/variables/secrets.ts';
import { newVariableOn } from '#services/capabilities/variables/service.ts';
import { refuseDeleting } from '#services/service/service.ts';

type Item = ImportInput['vars'][number];

/** Variables that an import creates and changes on one holder. */
interface Batch {
  place: Place;
  created: { row: NewVariable; item: Item }[];
  changed: { entry: Entry; item: Item }[];
}

/** An import under way. */
interface Import {
  context: Context;
  line: Line;
  overwrite: boolean;
  /** Errors by the id of the secret manager access. */
  refusals: ReadonlyMap<string, AppError>;
  /** Batches by the id of the holder. */
  batches: Map<string, Batch>;
  seen: Set<string>;
}

/**
 * Imports variables and secrets of a service, its environment and its project, each into the scope that it names. Each succeeds or fails by
 * itself. A key that exists needs `overwrite`, which changes nothing but the value. The value of an external secret is its name upstream;
 * changing it requires the same right as choosing it elsewhere. `holders` are the places of the named scopes, each locked and permitted.
 */
export async function importVariables(
  context: Context,
  service: Place,
  holders: Partial<Record<RecordScope, Place>>,
  input: ImportInput,
) {
  refuseDeleting(service);
  const line = await loadLine(context, service);
  const { overwrite } = input;
  const refusals = overwrite ? await refusalsOf(context, line) : new Map<string, AppError>();
  const work: Import = { context, line, overwrite, refusals, batches: new Map(), seen: new Set() };
  const failed: { item: Item; message: string }[] = [];
  for (const item of input.vars) {
    const message = addTo(work, holders[item.scope], item);
    if (message) failed.push({ item, message });
  }
  for (const batch of work.batches.values()) await carryOut(context, line, batch);
  const failures = new Set(failed.map((one) => one.item));
  const naming = ({ name, scope, is_secret }: Item) => ({ name, scope, is_secret });
  return {
    total_variables_to_import: input.vars.length,
    successful_imported_variables: input.vars
      .filter((item) => !failures.has(item))
      .map((item) => ({ ...naming(item), ...(item.is_secret ? {} : { value: item.value }) })),
    failed_variables: failed.map(({ item, message }) => ({ ...naming(item), message })),
  };
}

/** Returns the secret manager accesses of a line that the caller may not read from. */
async function refusalsOf(context: Context, { place, entries }: Line): Promise<Map<string, AppError>> {
  const refusals = new Map<string, AppError>();
  for (const id of new Set(entries.flatMap((entry) => entry.external?.access ?? []))) {
    const refusal = await accessRefusal(context, place, id);
    if (refusal) refusals.set(id, refusal);
  }
  return refusals;
}

/** Adds an item to the batch of its holder, or returns the reason why it is not imported. */
function addTo(work: Import, place: Place | undefined, item: Item): string | undefined {
  const { context, line, overwrite, refusals, batches, seen } = work;
  if (!place) return `scope: ${item.scope} is neither the service's own nor ENVIRONMENT or PROJECT`;
  const name = `${item.scope} ${item.name} ${item.is_secret}`;
  if (seen.has(name)) return 'name: is there twice in the import';
  seen.add(name);
  const wrong = wrongValue(item.value);
  if (wrong) return `value: ${wrong}`;
  const batch = batches.get(place.id) ?? { place, created: [], changed: [] };
  const entry = line.entries.find(
    (one) => one.parentId === place.id && one.key === item.name && (one.isSecret ?? false) === item.is_secret,
  );
  if (entry) {
    if (!overwrite) return `name: ${item.name} is there already: import with overwrite to change its value`;
    const refusal = entry.external && choosesSecret(entry, item) ? refusals.get(entry.external.access) : undefined;
    if (refusal) return refusal.message;
    if (entry.aliases === undefined) batch.changed.push({ entry, item });
    // Views show the key of the source as the value: an unchanged value is accepted.
    else if (item.value !== sourceOf(entry, line.byId)?.key) return 'value: the value of an alias cannot be edited';
  } else {
    const wrongName = wrongKey(item.name, context.settings.builtInVariablePrefix);
    if (wrongName) return `name: ${wrongName}`;
    batch.created.push({ row: toRow(context, place, item), item });
  }
  batches.set(place.id, batch);
  return undefined;
}

const toRow = (context: Context, place: Place, item: Item): NewVariable => ({
  ...newVariableOn(context, place, newId()),
  key: item.name,
  is_secret: item.is_secret,
  value: item.is_secret ? null : item.value,
  mount_path: null,
  description: null,
  enable_interpolation_in_file: false,
});

/** Writes the batch of one holder, with one insert, one update and one audit event. */
async function carryOut(context: Context, line: Line, { place, created, changed }: Batch): Promise<void> {
  const { organizationId } = place;
  if (created.length > 0)
    await insertVariables(
      context.db,
      created.map(({ row }) => row),
    );
  const versionOf = (entry: Entry) => (entry.secretVersion ?? 0) + 1;
  if (changed.length > 0)
    await updateVariables(
      context.db,
      { organizationId },
      changed.map(({ entry, item }) => ({
        id: entry.id,
        value: entry.isSecret ? null : item.value,
        value_version: entry.isSecret ? versionOf(entry) : 1,
        ...(choosesSecret(entry, item) ? newChooser(context) : chooserOf(entry.external)),
      })),
    );
  const secrets: SecretValue[] = [
    ...created
      .filter(({ item }) => item.is_secret)
      .map(({ row, item }) => ({ id: row.id, version: 1, value: item.value })),
    ...changed
      .filter(({ entry }) => entry.isSecret)
      .map(({ entry, item }) => ({ id: entry.id, version: versionOf(entry), value: item.value })),
  ];
  await sealSecrets(context, organizationId, secrets);
  await touchHolder(context, place);
  const toView = ({ name, scope, is_secret, value }: Item) => ({
    key: name,
    scope,
    is_secret,
    value: is_secret ? null : value,
  });
  const before = changed.map(({ entry }) => ({
    key: entry.key,
    is_secret: entry.isSecret ?? false,
    value: entry.value,
  }));
  await tell(context, { ...line, place, environment: place.scope === 'PROJECT' ? null : line.environment }, false, {
    type: 'IMPORT',
    before: { variables: before },
    after: { variables: [...created, ...changed].map(({ item }) => toView(item)) },
  });
}
