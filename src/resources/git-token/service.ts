import { conflict, internal, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { apiRoot, type Provider, type ProviderAccess } from '#resources/git-token/provider.ts';
import * as queries from '#resources/git-token/queries.ts';

export interface GitTokenInput {
  name: string;
  description?: string;
  type: string;
  token?: string;
  workspace?: string;
  git_api_url?: string;
  expired_at?: string;
}

/** Returns the API address of a provider's own service; self-hosted ones name theirs. */
const apiUrlOf = ({ settings }: Context, type: string): string =>
  ({ GITHUB: settings.githubApiUrl, GITLAB: settings.gitlabApiUrl, BITBUCKET: settings.bitbucketApiUrl })[
    type as Provider
  ];

const placeOf = (id: string): string => `git_token/${id}/token`;

/** A git token as it is answered: never the token itself. */
export const toGitTokenView = (row: queries.GitTokenRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  description: row.description ?? '',
  type: row.type,
  expired_at: row.expired_at?.toISOString().slice(0, 10),
  workspace: row.workspace ?? undefined,
  associated_services_count: row.services,
  git_api_url: row.git_api_url,
});

/** Stores a token of a git provider, encrypted. Names may repeat (docs/contributing/rules.md 8). */
export async function createGitToken(
  context: Context,
  organizationId: string,
  input: GitTokenInput & { token: string },
) {
  const id = newId();
  const columns = {
    name: input.name.trim(),
    description: input.description ?? null,
    type: input.type,
    token: await context.vault.seal(context.db, organizationId, placeOf(id), input.token),
    git_api_url: input.git_api_url ?? apiUrlOf(context, input.type),
    workspace: input.workspace ?? null,
    expired_at: input.expired_at ? new Date(input.expired_at) : null,
  };
  await queries.insertGitToken(context.db, { id, organization_id: organizationId, ...columns });
  const row = await findRow(context, organizationId, id);
  const view = toGitTokenView(row);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(row), after: view });
  return view;
}

/** Changes a git token; fields that are left out stay, the token too. */
export async function editGitToken(context: Context, present: queries.GitTokenRow, input: GitTokenInput) {
  const { organization_id: organizationId, id } = present;
  const kind = input.type === present.type ? present.git_api_url : apiUrlOf(context, input.type);
  const git_api_url = input.git_api_url ?? kind;
  // A token goes to the address that it was given for: naming another address does not reveal it.
  if (input.token === undefined && git_api_url !== present.git_api_url)
    throw invalidField('token', 'is required when type or git_api_url change: it would be sent to another address');
  await queries.updateGitToken(context.db, { organizationId }, id, {
    name: input.name.trim(),
    description: input.description ?? present.description,
    type: input.type,
    token:
      input.token === undefined
        ? present.token
        : await context.vault.seal(context.db, organizationId, placeOf(id), input.token),
    git_api_url,
    workspace: input.workspace ?? present.workspace,
    expired_at: input.expired_at ? new Date(input.expired_at) : present.expired_at,
  });
  const row = await findRow(context, organizationId, id);
  const [before, after] = [toGitTokenView(present), toGitTokenView(row)];
  await audit(context, { organizationId, type: 'UPDATE', target: targetOf(row), before, after });
  return after;
}

/** Deletes a git token; 409 while services or a cluster use it. */
export async function deleteGitToken(context: Context, row: queries.GitTokenRow): Promise<void> {
  const { organization_id: organizationId, id } = row;
  await queries.holdForDelete(context.db, { organizationId }, id);
  const { services } = await queries.countServicesOf(context.db, { organizationId }, id);
  if (services > 0) throw inUse(row.name);
  const cluster = await queries.findClusterOf(context.db, { organizationId }, id);
  if (cluster) throw conflict(`The cluster ${cluster.name} uses the git token ${row.name}: give it another first.`);
  try {
    await queries.deleteGitTokenRow(context.db, { organizationId }, id);
  } catch (error) {
    if (brokenConstraint(error)) throw inUse(row.name);
    throw error;
  }
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(row), before: toGitTokenView(row) });
}

/** Returns the access to the provider's API with a git token: the token goes nowhere else. */
export async function accessOf(
  { db, vault }: Pick<Context, 'db' | 'vault'>,
  row: Pick<queries.GitTokenRow, 'id' | 'organization_id' | 'type' | 'git_api_url' | 'token'>,
  signal: AbortSignal,
): Promise<ProviderAccess> {
  const provider = row.type as Provider;
  return {
    organizationId: row.organization_id,
    provider,
    api: apiRoot(provider, row.git_api_url),
    token: await vault.open(db, row.organization_id, placeOf(row.id), row.token),
    signal,
  };
}

const inUse = (name: string) =>
  conflict(`Services use the git token ${name}: give them another first (associatedServices lists them).`);

const targetOf = (row: queries.GitTokenRow) => ({
  type: 'ORGANIZATION' as const,
  id: row.id,
  name: row.name,
  sub: 'GIT_TOKEN' as const,
});

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findGitTokenById(context.db, [organizationId], id);
  if (!row) throw internal(`Git token ${id} is gone within its own transaction.`);
  return row;
}
