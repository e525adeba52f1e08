import { conflict, internal } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Principal } from '#platform/access/principal.ts';
import { visibleClusters } from '#platform/access/visibility.ts';
import type { Context } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { listClustersWithCredentials, renameCredentialsOfClusters } from '#resources/cluster/index.ts';
import * as queries from '#resources/credentials/queries.ts';
import type { CredentialsInput } from '#resources/credentials/schema.ts';
import type { AccountParts, ObjectType } from '#resources/credentials/shapes.ts';

/** Additional data that binds stored secrets to their row. */
const sealedAs = (id: string): string => `credentials/${id}/secrets`;

/** Credentials as they are answered: never their secrets. */
export const toCredentialsView = (row: queries.CredentialsRow) => ({
  id: row.id,
  name: row.name,
  object_type: row.object_type as ObjectType,
  ...(row.fields as Record<string, string | number>),
});

async function columnsOf(context: Context, organizationId: string, id: string, name: string, parts: AccountParts) {
  const hasSecrets = Object.keys(parts.secrets).length > 0;
  return {
    name: name.trim(),
    object_type: parts.objectType,
    fields: parts.fields,
    secrets: hasSecrets
      ? await context.vault.seal(context.db, organizationId, sealedAs(id), JSON.stringify(parts.secrets))
      : null,
  };
}

/** Stores an account of a provider, its secrets encrypted. Calls no provider. Names may repeat. */
export async function createCredentials(
  context: Context,
  organizationId: string,
  cloudProvider: queries.CloudProvider,
  input: CredentialsInput,
  parts: AccountParts,
) {
  const id = newId();
  const columns = await columnsOf(context, organizationId, id, input.name, parts);
  await queries.insertCredentials(context.db, {
    id,
    organization_id: organizationId,
    cloud_provider: cloudProvider,
    ...columns,
  });
  const row = await findRow(context, organizationId, id);
  const view = toCredentialsView(row);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(row), after: view });
  return view;
}

/** Replaces an account. Its secrets are replaced with its fields, so the body must carry all of them. */
export async function editCredentials(
  context: Context,
  present: queries.CredentialsRow,
  input: CredentialsInput,
  parts: AccountParts,
) {
  const { organization_id: organizationId, id } = present;
  const columns = await columnsOf(context, organizationId, id, input.name, parts);
  await queries.updateCredentials(context.db, { organizationId }, id, columns);
  if (columns.name !== present.name)
    await renameCredentialsOfClusters(context.db, { organizationId }, id, columns.name);
  const row = await findRow(context, organizationId, id);
  const [before, after] = [toCredentialsView(present), toCredentialsView(row)];
  await audit(context, { organizationId, type: 'UPDATE', target: targetOf(row), before, after });
  return after;
}

/** Deletes credentials; 409 while clusters name them. */
export async function deleteCredentials(context: Context, row: queries.CredentialsRow): Promise<void> {
  const { organization_id: organizationId, id } = row;
  try {
    await queries.deleteCredentialsRow(context.db, { organizationId }, id);
  } catch (error) {
    if (!brokenConstraint(error)) throw error;
    throw conflict(
      `Clusters use the credentials ${row.name}: give them others first; GET /organization/${organizationId}/credentials lists them.`,
    );
  }
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(row), before: toCredentialsView(row) });
}

/** Credentials of an organization, each with the clusters that name them, as far as the caller may see those. */
export async function listCredentialsWithClusters({ db }: Context, principal: Principal, organizationId: string) {
  const rows = await queries.listCredentials(db, { organizationId }).execute();
  const visible = visibleClusters(principal, organizationId);
  const clusters = await listClustersWithCredentials(db, { organizationId }).where(visible).execute();
  const byCredentials = Map.groupBy(clusters, ({ credentials_id }) => credentials_id);
  return rows.map((row) => ({
    credential: toCredentialsView(row),
    clusters: (byCredentials.get(row.id) ?? []).map(({ id, name }) => ({
      id,
      name,
      cloud_provider: row.cloud_provider as queries.CloudProvider,
    })),
  }));
}

const targetOf = (row: queries.CredentialsRow) => ({
  type: 'ORGANIZATION' as const,
  id: row.id,
  name: row.name,
  sub: 'CLOUD_PROVIDER_CREDENTIALS' as const,
});

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findCredentialsById(context.db, [organizationId], id);
  if (!row) throw internal(`Credentials ${id} are gone within their own transaction.`);
  return row;
}
