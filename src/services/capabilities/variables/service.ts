import { badRequest, conflict, internal, invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { isStrictlyLower, mountPathOf, sourceOf, valueHolderOf } from '#deployments/model/variables.ts';
import { tell, tellOfDependents, touchHolder } from '#services/capabilities/variables/changes.ts';
import {
  chooserAfter,
  choosesSecret,
  newChooser,
  refuseAccess,
  unknownAccess,
} from '#services/capabilities/variables/external.ts';
import { loadLine, type Entry, type Line, type Place } from '#services/capabilities/variables/line.ts';
import * as queries from '#services/capabilities/variables/queries.ts';
import { checkSaid } from '#services/capabilities/variables/rules.ts';
import { openSealed, openSecrets, sealSecrets } from '#services/capabilities/variables/secrets.ts';
import { toMainView } from '#services/capabilities/variables/views.ts';
import { refuseDeleting } from '#services/service/service.ts';

/** Entry with all variables that are visible from its place. */
export interface FoundInLine extends Line {
  entry: Entry;
}

interface SaidOfAny {
  description?: string | null;
  enable_interpolation_in_file?: boolean | null;
}

export interface CreateInput extends SaidOfAny {
  key: string;
  value?: string;
  mount_path?: string | null;
  secret_manager_access_id?: string | null;
}

export type EditInput = Omit<CreateInput, 'value'> & { value?: string | null };

/** Sort that an id must name: a variable, a secret, or either if undefined. */
export type Wanted = 'variable' | 'secret' | undefined;

/** Creates a variable or a secret on a holder. Throws 409 if the holder has one with that key (docs/contributing/rules.md 32). */
export async function createVariable(context: Context, place: Place, isSecret: boolean, input: CreateInput) {
  refuseDeleting(place);
  checkSaid(input, context.settings.builtInVariablePrefix);
  const access = input.secret_manager_access_id ?? null;
  if (access) await refuseAccess(context, place, access);
  return insert(context, place, input, input.value ?? '', {
    key: input.key,
    // Only the name of an external secret is stored here (docs/contributing/rules.md 34).
    is_secret: isSecret && !access,
    mount_path: input.mount_path ?? null,
    enable_interpolation_in_file: input.enable_interpolation_in_file ?? false,
    secret_manager_access_id: access,
    ...(access ? newChooser(context) : {}),
  });
}

/**
 * Creates an override at a place (docs/contributing/rules.md 30). Throws 404 if the source is not visible there, 400 if the place is no
 * lower scope, and 409 if the place has an override already.
 */
export async function overrideVariable(
  context: Context,
  place: Place,
  sourceId: string,
  wanted: Wanted,
  input: SaidOfAny & { value?: string | null },
) {
  refuseDeleting(place);
  // Before its key is read: a source that is renamed meanwhile renames the overrides that are there.
  await queries.lockKey(context.db, place, sourceId);
  const { entry: source } = await findVisible(context, place, sourceId, wanted);
  if (!isStrictlyLower(place.scope, source.scope))
    throw badRequest(
      `An override stands in a lower scope than what it overrides: ${source.key} has the scope ${source.scope}, which ${place.scope} is not lower than.`,
    );
  if (typeof input.value !== 'string') throw invalidField('value', 'is required: an override has a value of its own');
  checkSaid({ ...input, key: undefined }, context.settings.builtInVariablePrefix);
  return insert(context, place, input, input.value, {
    key: source.key,
    is_secret: source.isSecret ?? false,
    mount_path: null,
    enable_interpolation_in_file: input.enable_interpolation_in_file ?? source.interpolateFile ?? false,
    ...(source.scope === 'BUILT_IN'
      ? { overridden_built_in: source.id, built_in_service_id: source.service?.id ?? null }
      : { overridden_id: source.id }),
  });
}

/**
 * Creates an alias at a place (docs/contributing/rules.md 30). Throws 404 if the source is not visible there, and 400 if the source is an
 * alias itself.
 */
export async function aliasVariable(
  context: Context,
  place: Place,
  sourceId: string,
  wanted: Wanted,
  input: SaidOfAny & { key: string },
) {
  refuseDeleting(place);
  checkSaid(input, context.settings.builtInVariablePrefix);
  const { entry: source } = await findVisible(context, place, sourceId, wanted);
  if (source.aliases !== undefined)
    throw badRequest(`An alias cannot be created on an alias: ${source.key} is one. Alias what it is an alias of.`);
  return insert(context, place, input, null, {
    key: input.key,
    is_secret: source.isSecret ?? false,
    mount_path: null,
    enable_interpolation_in_file: input.enable_interpolation_in_file ?? source.interpolateFile ?? false,
    ...(source.scope === 'BUILT_IN'
      ? { aliased_built_in: source.id, built_in_service_id: source.service?.id ?? null }
      : { aliased_id: source.id }),
  });
}

/**
 * Changes a variable of a holder. Fields that are absent or null keep their value (docs/contributing/rules.md 31). Its overrides get its
 * key.
 */
export async function editVariable(context: Context, place: Place, id: string, wanted: Wanted, input: EditInput) {
  refuseDeleting(place);
  const before = await findOwn(context, place, id, wanted, 'edited');
  const { entry } = before;
  await checkEdit(context, before, input);
  const isNewSecret = entry.secretVersion !== undefined && typeof input.value === 'string';
  const version = (entry.secretVersion ?? 1) + (isNewSecret ? 1 : 0);
  const change: queries.VariableChange = {
    ...(input.key === entry.key ? {} : { key: input.key }),
    value: entry.isSecret || entry.aliases ? null : (input.value ?? entry.value),
    value_version: version,
    mount_path: entry.overrides || entry.aliases ? null : (input.mount_path ?? entry.mountPath ?? null),
    description: input.description === undefined ? entry.description : input.description,
    enable_interpolation_in_file: input.enable_interpolation_in_file ?? entry.interpolateFile ?? false,
    secret_manager_access_id: input.secret_manager_access_id ?? entry.external?.access ?? null,
    ...(await chooserAfter(context, place, entry, input)),
  };
  const scope = { organizationId: place.organizationId };
  await refuseTakenKey(place, input.key, () => queries.updateVariable(context.db, scope, id, change));
  if (isNewSecret) await sealSecrets(context, place.organizationId, [{ id, version, value: input.value! }]);
  if (input.key !== entry.key) await renameOverrides(context, place, id, input.key);
  await touchHolder(context, place);
  const after = await findVisible(context, place, id, wanted);
  await tell(context, after, entry.isSecret ?? false, {
    type: 'UPDATE',
    before: toMainView(before),
    after: toMainView(after),
  });
  return after;
}

/** Deletes a variable of a holder with its overrides and aliases (docs/contributing/rules.md 30). */
export async function removeVariable(context: Context, place: Place, id: string, wanted: Wanted): Promise<void> {
  const found = await findOwn(context, place, id, wanted, 'deleted');
  const scope = { organizationId: place.organizationId };
  const dependents = await queries.listDependents(context.db, scope, id);
  await queries.deleteVariable(context.db, scope, id);
  await touchHolder(context, place);
  await tell(context, found, found.entry.isSecret ?? false, { type: 'DELETE', before: toMainView(found) });
  await tellOfDependents(context, place.organizationId, dependents, { type: 'DELETE' });
}

/** Finds the variable or secret that a place sees under an id. 404 unless it is of the wanted sort. */
export async function findVisible(context: Context, place: Place, id: string, wanted: Wanted): Promise<FoundInLine> {
  const line = await loadLine(context, place, id);
  const entry = line.byId.get(id);
  if (!entry || (wanted && (entry.isSecret ?? false) !== (wanted === 'secret')))
    throw notFound(wanted === 'secret' ? 'Secret' : 'Variable');
  return { ...line, entry };
}

/** Finds the variable of a holder for a change. Throws 404 if it is inherited, and 400 for built-ins. */
async function findOwn(context: Context, place: Place, id: string, wanted: Wanted, verb: string) {
  const found = await findVisible(context, place, id, wanted);
  const { entry } = found;
  if (entry.scope === 'BUILT_IN')
    throw badRequest(
      `A BUILT_IN ${entry.isSecret ? 'secret' : 'variable'} cannot be ${verb}: override ${entry.key} or make an alias of it.`,
    );
  if (entry.parentId !== place.id) throw notFound(wanted === 'secret' ? 'Secret' : 'Variable');
  return found;
}

/** Throws 400 with the rule that an edit would break (docs/contributing/rules.md, *Hierarchy*, docs/contributing/rules.md 31). */
async function checkEdit(context: Context, found: FoundInLine, input: EditInput): Promise<void> {
  const { entry, byId, place } = found;
  const isNewKey = input.key !== entry.key;
  if (isNewKey && entry.overrides !== undefined)
    throw invalidField('key', `the key of an override cannot be edited: it stays ${entry.key}`);
  checkSaid({ ...input, ...(isNewKey ? {} : { key: undefined }) }, context.settings.builtInVariablePrefix);
  const isDerived = entry.overrides !== undefined || entry.aliases !== undefined;
  if (isDerived && typeof input.mount_path === 'string' && input.mount_path !== mountPathOf(entry, byId))
    throw invalidField('mount_path', 'cannot be edited: overrides and aliases have that of what they are of');
  if (entry.aliases !== undefined && typeof input.value === 'string')
    if (input.value !== sourceOf(entry, byId)?.key && input.value !== (await presentValue(context, found)))
      throw invalidField('value', 'the value of an alias cannot be edited: edit what it is an alias of');
  const access = input.secret_manager_access_id;
  if (!choosesSecret(entry, input)) return;
  if (isDerived || entry.isSecret)
    throw invalidField('secret_manager_access_id', 'only variables that are no override, alias or secret can have one');
  await refuseAccess(context, place, access ?? entry.external!.access);
}

/** Returns the present value of a variable, decrypted if it is a secret. */
async function presentValue(context: Context, { entry, byId, place }: FoundInLine): Promise<string | null> {
  const holder = valueHolderOf(entry, byId);
  if (holder?.sealed) return openSealed(context, place.organizationId, holder.sealed);
  if (holder?.secretVersion === undefined) return holder?.value ?? null;
  const secret = { id: holder.id, version: holder.secretVersion };
  return (await openSecrets(context, place.organizationId, [secret]))(secret);
}

async function renameOverrides(context: Context, place: Place, id: string, key: string): Promise<void> {
  const { organizationId } = place;
  const dependents = await queries.listDependents(context.db, { organizationId }, id);
  const overrides = dependents.filter((one) => one.overrides_only);
  if (overrides.length === 0) return;
  const ids = overrides.map((one) => one.id);
  await refuseTakenKey(place, key, () => queries.renameVariables(context.db, { organizationId }, ids, key));
  await tellOfDependents(context, organizationId, overrides, { type: 'UPDATE', key });
}

type OwnPart = Pick<queries.NewVariable, 'key' | 'is_secret' | 'mount_path' | 'enable_interpolation_in_file'> &
  Partial<queries.NewVariable>;

/** Stores a new variable with its value (null for an alias). Increments the version of its holder and writes the audit event. */
async function insert(context: Context, place: Place, said: SaidOfAny, value: string | null, own: OwnPart) {
  const id = newId();
  const row = {
    ...newVariableOn(context, place, id),
    ...own,
    value: own.is_secret ? null : value,
    description: said.description ?? null,
  };
  await refuseTakenKey(place, own.key, () => queries.insertVariables(context.db, [row]));
  if (own.is_secret && value !== null) await sealSecrets(context, place.organizationId, [{ id, version: 1, value }]);
  await touchHolder(context, place);
  const found = await findVisible(context, place, id, undefined);
  await tell(context, found, own.is_secret, { type: 'CREATE', after: toMainView(found) });
  return found;
}

/** Returns the columns of a new row that its holder decides. */
export const newVariableOn = (context: Context, { organizationId, scope, ...place }: Place, id: string) => ({
  id,
  organization_id: organizationId,
  scope,
  ...(scope === 'PROJECT'
    ? { project_id: place.id }
    : scope === 'ENVIRONMENT'
      ? { environment_id: place.id }
      : { service_id: place.id }),
  owned_by: context.settings.ownedBy,
});

const SOURCES = ['overridden_id', 'aliased_id', 'built_in_service_id'].map(
  (column) => `variable_organization_id_${column}_fkey`,
);

async function refuseTakenKey(place: Place, key: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    const constraint = brokenConstraint(error);
    if (constraint?.startsWith('variable_key_'))
      throw conflict(`The key "${key}" is taken in ${place.name} or below it: choose another, or edit what has it.`);
    if (constraint === 'variable_secret_manager_access_fkey') throw unknownAccess();
    // The source was deleted meanwhile.
    if (constraint && SOURCES.includes(constraint)) throw notFound('Variable');
    if (constraint) throw internal(`A variable breaks ${constraint}.`, error);
    throw error;
  }
}
