import { isDeepStrictEqual } from 'node:util';
import { conflict, internal } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import type { GroupInput, MetadataKind } from '#resources/metadata-group/kinds.ts';
import * as queries from '#resources/metadata-group/queries.ts';

/** Makes a group. Names may repeat: the reference documents no 409 (docs/contributing/rules.md 8). */
export async function createGroup(context: Context, of: MetadataKind, organizationId: string, input: GroupInput) {
  const id = newId();
  const columns = of.toColumns(input);
  await queries.insertGroup(context.db, { id, organization_id: organizationId, kind: of.kind, ...columns });
  const row = await findRow(context, of, organizationId, id);
  const view = of.toView(row);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(of, row), after: view });
  return view;
}

/**
 * Changes a group. New content makes the services and clusters that name it OUT_OF_DATE (docs/contributing/engine.md); a new name does not.
 */
export async function editGroup(context: Context, of: MetadataKind, present: queries.GroupRow, input: GroupInput) {
  const { organization_id: organizationId, id } = present;
  const columns = of.toColumns(input);
  await queries.updateGroup(context.db, { organizationId }, id, columns);
  if (!isDeepStrictEqual([present.entries, present.scopes], [columns.entries, columns.scopes])) {
    await queries.touchServicesNaming(context.db, { organizationId }, id);
    await queries.touchClustersNaming(context.db, { organizationId }, id);
  }
  const row = await findRow(context, of, organizationId, id);
  const after = of.toView(row);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    target: targetOf(of, row),
    before: of.toView(present),
    after,
  });
  return after;
}

/** Deletes a group; 409 while a service or cluster names it. */
export async function deleteGroup(context: Context, of: MetadataKind, row: queries.GroupRow): Promise<void> {
  const { organization_id: organizationId, id } = row;
  const uses = await queries.countUses(context.db, { organizationId }, id);
  if (uses > 0)
    throw conflict(
      `${uses} ${uses === 1 ? 'service or cluster carries' : 'services and clusters carry'} the ${of.name} ${row.name}: take it from them first (associatedItems lists them).`,
    );
  await queries.deleteGroupRow(context.db, { organizationId }, id);
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(of, row), before: of.toView(row) });
}

/** Service or cluster that names a group, as it is answered. */
export const toItemView = (row: queries.ItemRow) => ({
  cluster_id: row.cluster_id,
  cluster_name: row.cluster_name,
  project_id: row.project_id ?? undefined,
  project_name: row.project_name ?? undefined,
  environment_id: row.environment_id ?? undefined,
  environment_name: row.environment_name ?? undefined,
  item_id: row.item_id,
  item_name: row.item_name,
  item_type: row.item_type,
});

const targetOf = (of: MetadataKind, row: queries.GroupRow) => ({
  type: 'ORGANIZATION' as const,
  id: row.id,
  name: row.name,
  sub: of.sub,
});

async function findRow(context: Context, of: MetadataKind, organizationId: string, id: string) {
  const row = await queries.findGroup(context.db, [organizationId], of.kind, id);
  if (!row) throw internal(`The ${of.name} ${id} is gone within its own transaction.`);
  return row;
}
