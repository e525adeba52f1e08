import { conflict, internal } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { keep } from '#resources/registry/keeping.ts';
import { availableOf, deleteUnused, toKeptView } from '#resources/registry/kept.ts';
import { REGISTRIES, REGISTRY_KINDS } from '#resources/registry/kinds.ts';
import * as queries from '#resources/registry/queries.ts';
import type { ContainerRegistryRequest } from '#resources/registry/schema.ts';

const TABLE = 'container_registry' as const;

/** Returns a registry as it is answered. */
export const toRegistryView = (row: queries.RegistryRow) => ({
  ...toKeptView(row),
  ...(row.cluster ? { cluster: row.cluster } : {}),
});

/** Lists the kinds of registries, each with the fields that it requires. */
export const availableRegistries = () => availableOf(REGISTRY_KINDS, REGISTRIES);

/** Stores a registry with its credentials, encrypted. Names may repeat (docs/contributing/rules.md 8). */
export async function createRegistry(context: Context, organizationId: string, input: ContainerRegistryRequest) {
  const at = { table: TABLE, organizationId, id: newId() };
  await queries.insertRegistry(context.db, {
    id: at.id,
    organization_id: organizationId,
    name: input.name.trim(),
    description: input.description ?? null,
    ...(await keep(context, at, REGISTRIES[input.kind], input, null)),
  });
  const row = await findRow(context, organizationId, at.id);
  const view = toRegistryView(row);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(row), after: view });
  return view;
}

/** Changes a registry; fields that are left out stay. Secrets stay too, as long as their server does. */
export async function editRegistry(context: Context, present: queries.RegistryRow, input: ContainerRegistryRequest) {
  const { organization_id: organizationId, id } = present;
  const at = { table: TABLE, organizationId, id };
  await queries.updateRegistry(context.db, { organizationId }, id, {
    name: input.name.trim(),
    description: input.description ?? present.description,
    ...(await keep(context, at, REGISTRIES[input.kind], input, present)),
  });
  const row = await findRow(context, organizationId, id);
  const [before, after] = [toRegistryView(present), toRegistryView(row)];
  await audit(context, { organizationId, type: 'UPDATE', target: targetOf(row), before, after });
  return after;
}

/** Deletes a registry; 409 while services use it, or a cluster whose built images are pushed there. */
export async function deleteRegistry(context: Context, row: queries.RegistryRow): Promise<void> {
  const { organization_id: organizationId, id } = row;
  if (row.cluster)
    throw conflict(
      `Images that are built for cluster ${row.cluster.name} are pushed to the container registry ${row.name}: give the cluster another one first (its advanced setting registry.id).`,
    );
  await deleteUnused('container registry', row, () => queries.deleteRegistryRow(context.db, { organizationId }, id));
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(row), before: toRegistryView(row) });
}

const targetOf = (row: queries.RegistryRow) => ({ type: 'CONTAINER_REGISTRY' as const, id: row.id, name: row.name });

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findRegistryById(context.db, [organizationId], id);
  if (!row) throw internal(`Container registry ${id} is gone within its own transaction.`);
  return row;
}
