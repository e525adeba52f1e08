import { internal, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { HELM_REPOSITORY_KINDS, REPOSITORIES } from '#resources/helm-repository/kinds.ts';
import * as queries from '#resources/helm-repository/queries.ts';
import type { HelmRepositoryRequest } from '#resources/helm-repository/schema.ts';
import { availableOf, deleteUnused, keep, toKeptView } from '#resources/registry/index.ts';

const TABLE = 'helm_repository' as const;

/** A Helm repository as it is answered. */
export const toHelmRepositoryView = (row: queries.HelmRepositoryRow) => ({
  ...toKeptView(row),
  skip_tls_verification: row.skip_tls_verification,
});

/** Lists the kinds of Helm repositories, each with the fields that it requires. */
export const availableHelmRepositories = () => availableOf(HELM_REPOSITORY_KINDS, REPOSITORIES);

/** Stores a Helm repository with its credentials, encrypted. Names may repeat (docs/contributing/rules.md 8). */
export async function createHelmRepository(context: Context, organizationId: string, input: HelmRepositoryRequest) {
  const at = { table: TABLE, organizationId, id: newId() };
  refuseRegistry(input);
  await queries.insertHelmRepository(context.db, {
    id: at.id,
    organization_id: organizationId,
    name: input.name.trim(),
    description: input.description ?? null,
    skip_tls_verification: input.skip_tls_verification,
    ...(await keep(context, at, REPOSITORIES[input.kind], input, null)),
  });
  const row = await findRow(context, organizationId, at.id);
  const view = toHelmRepositoryView(row);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(row), after: view });
  return view;
}

/** Changes a Helm repository; fields that are left out stay. Secrets stay too, as long as their server does. */
export async function editHelmRepository(
  context: Context,
  present: queries.HelmRepositoryRow,
  input: HelmRepositoryRequest,
) {
  const { organization_id: organizationId, id } = present;
  const at = { table: TABLE, organizationId, id };
  refuseRegistry(input);
  await queries.updateHelmRepository(context.db, { organizationId }, id, {
    name: input.name.trim(),
    description: input.description ?? present.description,
    skip_tls_verification: input.skip_tls_verification,
    ...(await keep(context, at, REPOSITORIES[input.kind], input, present)),
  });
  const row = await findRow(context, organizationId, id);
  const [before, after] = [toHelmRepositoryView(present), toHelmRepositoryView(row)];
  await audit(context, { organizationId, type: 'UPDATE', target: targetOf(row), before, after });
  return after;
}

/** Throws 400 for a registry's address where an index is required. */
function refuseRegistry({ kind, url }: HelmRepositoryRequest): void {
  if (kind === 'HTTPS' && url?.startsWith('oci:'))
    throw invalidField('url', `is of a registry, which is not of kind HTTPS: ${REPOSITORIES.HTTPS.example}`);
}

/** Deletes a Helm repository; 409 while services use it. */
export async function deleteHelmRepository(context: Context, row: queries.HelmRepositoryRow): Promise<void> {
  const { organization_id: organizationId, id } = row;
  await deleteUnused('Helm repository', row, () => queries.deleteHelmRepositoryRow(context.db, { organizationId }, id));
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(row), before: toHelmRepositoryView(row) });
}

/** Returns a repository that a body names; 400 naming the field if the organization has none of that id (docs/contributing/rules.md 7). */
export async function findHelmRepository(
  { db }: Pick<Context, 'db'>,
  organizationId: string,
  id: string,
  field = 'source.repository.repository',
): Promise<Pick<queries.HelmRepositoryRow, 'id' | 'name' | 'kind' | 'url'>> {
  const row = await queries.holdHelmRepository(db, { organizationId }, id);
  if (!row) throw invalidField(field, 'names no Helm repository of this organization');
  const { name, kind, url } = row;
  return { id, name, kind, url };
}

const targetOf = (row: queries.HelmRepositoryRow) => ({ type: 'HELM_REPOSITORY' as const, id: row.id, name: row.name });

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findHelmRepositoryById(context.db, [organizationId], id);
  if (!row) throw internal(`Helm repository ${id} is gone within its own transaction.`);
  return row;
}
