import { shortId, newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { builtInOfCopy } from '#deployments/model/built-in-variables.ts';
import { mountPathOf, valueHolderOf } from '#deployments/model/variables.ts';
import { findSurroundings, type Surroundings } from '#services/capabilities/variables/built-ins.ts';
import { ofBuiltIn, ofRow, type Entry } from '#services/capabilities/variables/line.ts';
import {
  insertVariables,
  listVisible,
  type NewVariable,
  type VariableRow,
} from '#services/capabilities/variables/queries.ts';
import { chooserOf } from '#services/capabilities/variables/external.ts';
import { openSealed, openSecrets, sealSecrets } from '#services/capabilities/variables/secrets.ts';

/** Source and target of a copy of variables within one organization. The copied services exist already. */
export interface VariableCopy {
  organizationId: string;
  from: { projectId: string; environmentId: string };
  to: { projectId: string; environmentId: string };
  /** Ids of the copies by the ids of the copied services. Contains the environment if all of it is copied. */
  copies: ReadonlyMap<string, string>;
}

/** Variables of the source, and the ids that are visible from the copy. */
interface Sight {
  own: VariableRow[];
  byId: ReadonlyMap<string, Entry>;
  /** Ids of the copies by the ids of the copied variables. */
  ids: ReadonlyMap<string, string>;
  /** Ids that are visible from the new place, without the copies. */
  seen: ReadonlySet<string>;
  after: Surroundings;
}

/** Secret whose value a copy takes: encrypted, or plain. */
interface NewSecret {
  id: string;
  holder: Entry;
}

/**
 * Copies own variables, secrets, overrides and aliases (docs/contributing/rules.md 20). A link to a copied variable becomes a link to its
 * copy. Other links stay if their source is visible from the new place, and otherwise become plain values with their source's value and
 * path. Outputs are not copied: the copy of the service writes its own.
 */
export async function copyVariables(context: Context, copy: VariableCopy): Promise<void> {
  const sight = await look(context, copy);
  if (sight.own.length === 0) return;
  const owners = new Map([
    [copy.from.projectId, copy.to.projectId],
    [copy.from.environmentId, copy.to.environmentId],
    ...copy.copies,
  ]);
  const secrets: NewSecret[] = [];
  const variables = sight.own.map((row) => {
    const id = sight.ids.get(row.id)!;
    const entry = sight.byId.get(row.id)!;
    const link = linkOf(entry, sight, owners);
    const holder = link && entry.aliases ? undefined : valueHolderOf(entry, sight.byId);
    if (holder?.isSecret) secrets.push({ id, holder });
    return {
      id,
      organization_id: copy.organizationId,
      key: row.key,
      is_secret: row.is_secret,
      value: typeof holder?.value === 'string' ? renamed(holder.value, copy.copies) : null,
      scope: row.scope,
      ...(row.service_id
        ? { service_id: copy.copies.get(row.service_id)! }
        : { environment_id: copy.copies.get(row.environment_id!)! }),
      mount_path: link ? row.mount_path : (mountPathOf(entry, sight.byId) ?? null),
      description: row.description,
      enable_interpolation_in_file: row.enable_interpolation_in_file,
      secret_manager_access_id: holder?.external?.access ?? null,
      ...chooserOf(holder?.external),
      owned_by: row.owned_by,
      output_of: copy.copies.get(row.output_of ?? '') ?? null,
      ...link,
    } satisfies NewVariable;
  });
  await insertVariables(context.db, uniform(variables));
  await copySecrets(context, copy, secrets);
}

/** Lists the keys of the secrets that a copy would have, external secrets included. */
export async function listCopiedSecrets(db: Database, copy: VariableCopy): Promise<string[]> {
  const rows = await listOwn(db, copy);
  return rows.filter((row) => row.is_secret || row.secret_manager_access_id !== null).map((row) => row.key);
}

async function listOwn(db: Database, { organizationId, from, copies }: VariableCopy): Promise<VariableRow[]> {
  const serviceIds = [...copies.keys()].filter((id) => id !== from.environmentId);
  const { projectId, environmentId } = from;
  const rows = await listVisible(db, { organizationId }, { projectId, environmentId, serviceIds });
  return rows.filter((row) => copies.has(row.service_id ?? row.environment_id ?? ''));
}

async function look(context: Context, { organizationId, from, to, copies }: VariableCopy): Promise<Sight> {
  const scope = { organizationId };
  const serviceIds = [...copies.keys()].filter((id) => id !== from.environmentId);
  const rows = await listVisible(context.db, scope, { ...from, serviceIds });
  const own = rows.filter((row) => copies.has(row.service_id ?? row.environment_id ?? ''));
  const [before, after, there] = [
    await findSurroundings(context, scope, from.projectId, from.environmentId),
    await findSurroundings(context, scope, to.projectId, to.environmentId),
    await listVisible(context.db, scope, { ...to, serviceIds: [] }),
  ];
  const entries = [...before!.builtIns.map((one) => ofBuiltIn(one, context.settings.ownedBy)), ...rows.map(ofRow)];
  return {
    own,
    byId: new Map(entries.map((entry) => [entry.id, entry])),
    ids: new Map(own.map((row) => [row.id, newId()])),
    seen: new Set([...there, ...after!.builtIns].map(({ id }) => id)),
    after: after!,
  };
}

/**
 * Returns the columns that link the copy of an override or alias to its source. Undefined for a plain value, and for a link whose source is
 * not visible from the copy, which becomes a plain value.
 */
function linkOf(entry: Entry, { ids, seen, after }: Sight, owners: ReadonlyMap<string, string>) {
  const source = entry.overrides ?? entry.aliases;
  if (source === undefined) return undefined;
  const copied = ids.get(source);
  if (copied) return entry.overrides ? { overridden_id: copied } : { aliased_id: copied };
  const moved = builtInOfCopy(source, owners) ?? source;
  if (!seen.has(moved)) return undefined;
  const builtIn = after.builtIns.find(({ id }) => id === moved);
  if (!builtIn) return entry.overrides ? { overridden_id: moved } : { aliased_id: moved };
  const of = { built_in_service_id: builtIn.service?.id ?? null };
  return entry.overrides ? { overridden_built_in: moved, ...of } : { aliased_built_in: moved, ...of };
}

/** Gives all rows the same columns, as one insert statement requires. */
const uniform = (variables: NewVariable[]): NewVariable[] =>
  variables.map((one) => ({
    ...({
      service_id: null,
      environment_id: null,
      overridden_id: null,
      aliased_id: null,
      overridden_built_in: null,
      aliased_built_in: null,
      built_in_service_id: null,
    } as object),
    ...one,
  }));

/** Seals the values of copied secrets again, because a value is sealed for the id of its variable. */
async function copySecrets(
  context: Context,
  { organizationId, copies }: VariableCopy,
  secrets: NewSecret[],
): Promise<void> {
  const stored = secrets.flatMap(({ holder }) => (holder.sealed ? [] : [versionOf(holder)]));
  const valueOf = await openSecrets(context, organizationId, stored);
  const values = await Promise.all(
    secrets.map(async ({ id, holder }) => ({
      id,
      version: 1,
      value: holder.sealed
        ? await openSealed(context, organizationId, holder.sealed)
        : renamed(valueOf(versionOf(holder)), copies),
    })),
  );
  await sealSecrets(context, organizationId, values);
}

const versionOf = ({ id, secretVersion }: Entry) => ({ id, version: secretVersion! });

/** Replaces references `{{KEY}}` to built-in variables of copied services by references to those of the copies. */
function renamed(value: string, copies: ReadonlyMap<string, string>): string {
  if (!value.includes('{{')) return value;
  const shorts = new Map(
    [...copies].map(([from, to]) => [`_Z${shortId(from).toUpperCase()}_`, `_Z${shortId(to).toUpperCase()}_`]),
  );
  return value.replaceAll(/\{\{[^{}]*\}\}/g, (reference) =>
    reference.replace(/_Z[0-9A-F]{8}_/, (short) => shorts.get(short) ?? short),
  );
}
