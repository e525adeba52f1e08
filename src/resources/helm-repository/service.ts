import { conflict, internal, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { checkUrl } from '#platform/http-client/index.ts';
import { parseRegistry } from '#platform/oci/index.ts';
import { HELM_REPOSITORY_KINDS, REPOSITORIES } from '#resources/helm-repository/kinds.ts';
import * as queries from '#resources/helm-repository/queries.ts';
import type { HelmRepositoryRequest } from '#resources/helm-repository/schema.ts';
import { openSecrets, readConfiguration, refuseMoved, requiredConfig, sealSecrets } from '#resources/registry/index.ts';

const TABLE = 'helm_repository';

/** A Helm repository as it is answered: of its configuration only what is no secret. */
export const toHelmRepositoryView = (row: queries.HelmRepositoryRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  kind: row.kind,
  description: row.description ?? '',
  url: row.url,
  skip_tls_verification: row.skip_tls_verification,
  associated_services_count: row.services,
  config: row.config as object,
});

/** The kinds of Helm repositories, each with what it takes. */
export const availableHelmRepositories = () =>
  HELM_REPOSITORY_KINDS.map((kind) => ({
    kind,
    required_config: requiredConfig(REPOSITORIES[kind]),
    is_mandatory: !REPOSITORIES[kind].anonymous,
  }));

/** Keeps a Helm repository with its credentials, encrypted. Names may repeat (decisions.md 8). */
export async function createHelmRepository(context: Context, organizationId: string, input: HelmRepositoryRequest) {
  const id = newId();
  const { config, secrets } = readConfiguration(input.kind, REPOSITORIES[input.kind], input.config);
  const columns = {
    name: input.name.trim(),
    description: input.description ?? null,
    kind: input.kind,
    url: urlOf(context, input, config['region']),
    skip_tls_verification: input.skip_tls_verification,
    config,
    secrets: await sealSecrets(context, organizationId, TABLE, id, secrets),
  };
  await queries.insertHelmRepository(context.db, { id, organization_id: organizationId, ...columns });
  const row = await findRow(context, organizationId, id);
  const view = toHelmRepositoryView(row);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(row), after: view });
  return view;
}

/** Changes a Helm repository; what is left out stays, its secrets too, as long as they go where they went. */
export async function editHelmRepository(
  context: Context,
  present: queries.HelmRepositoryRow,
  input: HelmRepositoryRequest,
) {
  const { organization_id: organizationId, id } = present;
  const same = input.kind === present.kind;
  const before = {
    config: present.config as Record<string, string>,
    secrets: await openSecrets(context, organizationId, TABLE, id, present.secrets),
  };
  const split = readConfiguration(input.kind, REPOSITORIES[input.kind], input.config, same ? before : null);
  const url = input.url === undefined && same ? present.url : urlOf(context, input, split.config['region']);
  refuseMoved(input.config, split, parseRegistry(url).base !== parseRegistry(present.url).base);
  await queries.updateHelmRepository(context.db, { organizationId }, id, {
    name: input.name.trim(),
    description: input.description ?? present.description,
    kind: input.kind,
    url,
    skip_tls_verification: input.skip_tls_verification,
    config: split.config,
    secrets: await sealSecrets(context, organizationId, TABLE, id, split.secrets),
  });
  const row = await findRow(context, organizationId, id);
  const [was, is] = [toHelmRepositoryView(present), toHelmRepositoryView(row)];
  await audit(context, { organizationId, type: 'UPDATE', target: targetOf(row), before: was, after: is });
  return is;
}

/** Forgets a Helm repository. 409 while services use it. */
export async function deleteHelmRepository(context: Context, row: queries.HelmRepositoryRow): Promise<void> {
  const { organization_id: organizationId, id } = row;
  if (row.services > 0) throw inUse(row.name);
  try {
    await queries.deleteHelmRepositoryRow(context.db, { organizationId }, id);
  } catch (error) {
    if (brokenConstraint(error)) throw inUse(row.name);
    throw error;
  }
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(row), before: toHelmRepositoryView(row) });
}

/** A repository that a body names. 400 naming the field where the organization has none of that id (decisions.md 7). */
export async function findHelmRepository(
  { db }: Pick<Context, 'db'>,
  organizationId: string,
  id: string,
  field = 'source.repository.repository',
): Promise<Pick<queries.HelmRepositoryRow, 'id' | 'name' | 'kind' | 'url'>> {
  const row = await queries.findHelmRepositoryById(db, [organizationId], id);
  if (!row) throw invalidField(field, 'names no Helm repository of this organization');
  const { name, kind, url } = row;
  return { id, name, kind, url };
}

/** Where a repository is: as given, else the kind's own place. 400 for an address of another protocol, or one that can never be called. */
function urlOf(
  context: Context,
  { kind, url: given }: Pick<HelmRepositoryRequest, 'kind' | 'url'>,
  region: string | number | undefined,
): string {
  const url = given ?? REPOSITORIES[kind].url(region);
  const example = kind === 'HTTPS' ? 'https://charts.example.com' : 'oci://registry.example.com/charts';
  if (url === null) throw invalidField('url', `is required for ${kind}: ${example}`);
  if (kind === 'HTTPS' && url.startsWith('oci:'))
    throw invalidField('url', `is of a registry, which is not of kind HTTPS: ${example}`);
  checkUrl(url.replace(/^oci:/, 'https:'), 'url', context.settings.allowedPrivateAddresses);
  return url;
}

const inUse = (name: string) =>
  conflict(`Services use the Helm repository ${name}: give them another first (associatedServices lists them).`);

const targetOf = (row: queries.HelmRepositoryRow) => ({ type: 'HELM_REPOSITORY' as const, id: row.id, name: row.name });

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findHelmRepositoryById(context.db, [organizationId], id);
  if (!row) throw internal(`Helm repository ${id} is gone within its own transaction.`);
  return row;
}
