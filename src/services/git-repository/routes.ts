import { requireSomewhere } from '#platform/access/granting.ts';
import { permits, type Principal } from '#platform/access/principal.ts';
import { fetchPage, slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listUsableGitTokens, type Provider } from '#resources/git-token/index.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import * as schema from '#services/git-repository/schema.ts';
import {
  listBranches,
  listDirectories,
  listRepositories,
  toAuthProviderView,
} from '#services/git-repository/service.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';

const ACCOUNT = 'Git repositories';
const ORGANIZATION = 'Organization Account Git Repositories';

/** Names of each provider in paths and operation ids. */
const PROVIDERS: [provider: Provider, path: string, name: string][] = [
  ['GITHUB', 'github', 'Github'],
  ['GITLAB', 'gitlab', 'Gitlab'],
  ['BITBUCKET', 'bitbucket', 'Bitbucket'],
];

/** The caller's organizations whose git tokens may be used for asking. */
const organizationsOf = (principal: Principal): string[] =>
  principal.grants
    .map(({ organizationId }) => organizationId)
    .filter((organizationId) => permits(principal, 'gitToken.read', { organizationId }));

/** Endpoints that list providers, repositories, branches and directories, so that a service can be created from them. */
export const gitRepositoryRoutes = (repositories: RepositoryReader): Route[] => [
  ...accountRoutes,
  ...PROVIDERS.flatMap(ofProvider),
  defineRoute({
    id: 'listDirectoriesFromGitRepository',
    method: 'POST',
    path: '/organization/{organizationId}/listDirectoriesFromGitRepository',
    tag: ACCOUNT,
    summary: 'List the directories within one of a git repository',
    description: 'Without a branch those of the default one.',
    target: organizationTarget,
    action: 'organization.read',
    transaction: false,
    body: schema.DirectoriesRequest,
    answer: { status: 200, body: schema.DirectoryList },
    errors: [502],
    handler: (call) => {
      // Reading uses the organization's git tokens: it takes the permission to create a service somewhere in the organization.
      requireSomewhere(call.principal, call.target.id, 'WRITE');
      return listDirectories(call, repositories, call.target.id, call.body);
    },
  }),
];

const accountRoutes: Route[] = [
  defineRoute({
    id: 'getOrganizationGitProviderAccount',
    method: 'GET',
    path: '/organization/{organizationId}/account/gitAuthProvider',
    tag: ORGANIZATION,
    summary: 'List the git tokens of an organization by which providers can be asked',
    description: 'Answers a row for each git token of the organization that has not expired.',
    target: organizationTarget,
    action: 'gitToken.read',
    query: PageQuery,
    answer: { status: 200, body: schema.GitAuthProviderList },
    handler: ({ db, target, query }) => fetchPage(db, listUsableGitTokens(db, [target.id]), query, toAuthProviderView),
  }),
  defineRoute({
    id: 'getGitProviderAccount',
    method: 'GET',
    path: '/account/gitAuthProvider',
    tag: ACCOUNT,
    summary: 'List the git tokens of your organizations by which providers can be asked',
    description: 'Answers a row for each git token of your organizations that has not expired.',
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: schema.GitAuthProviderList },
    handler: ({ db, principal, query }) =>
      fetchPage(db, listUsableGitTokens(db, organizationsOf(principal)), query, toAuthProviderView),
  }),
];

const ofProvider = ([provider, path, name]: (typeof PROVIDERS)[number]): Route[] => [
  defineRoute({
    id: `getOrganization${name}Repositories`,
    method: 'GET',
    path: `/organization/{organizationId}/account/${path}/repository`,
    tag: ORGANIZATION,
    summary: `List the repositories that ${name} shows to a git token of the organization`,
    description: `Asks ${name} with the named git token, else with the oldest usable one of the organization. Without a token the list is empty.`,
    target: organizationTarget,
    action: 'gitToken.read',
    query: schema.RepositoriesQuery,
    answer: { status: 200, body: schema.ProvidedRepositoryList },
    errors: [400, 502],
    transaction: false,
    handler: async (call) => {
      const { gitTokenId, ...ask } = call.query;
      const found = await listRepositories({ context: call, organizationIds: [call.target.id], provider, gitTokenId });
      return slicePage(found, ask);
    },
  }),
  defineRoute({
    id: `getOrganization${name}RepositoryBranches`,
    method: 'GET',
    path: `/organization/{organizationId}/account/${path}/repository/branch`,
    tag: ORGANIZATION,
    summary: `List the branches of a repository of ${name}`,
    description: `Asks ${name} for the branches of the repository \`name\`, such as acme/shop. Without a token the list is empty.`,
    target: organizationTarget,
    action: 'gitToken.read',
    query: schema.BranchesQuery,
    answer: { status: 200, body: schema.ProvidedBranchList },
    errors: [400, 502],
    transaction: false,
    handler: async (call) => {
      const { gitTokenId, name: repository, ...ask } = call.query;
      const asking = { context: call, organizationIds: [call.target.id], provider, gitTokenId };
      return slicePage(await listBranches(asking, repository), ask);
    },
  }),
  defineRoute({
    id: `get${name}Repositories`,
    method: 'GET',
    path: `/account/${path}/repository`,
    tag: ACCOUNT,
    summary: `List the repositories that ${name} shows to a git token of your organizations`,
    description: `Asks ${name} with the named git token, else with the oldest usable one of your organizations. Without a token the list is empty.`,
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: schema.ProvidedRepositoryList },
    errors: [400, 502],
    transaction: false,
    handler: async (call) => {
      const organizationIds = organizationsOf(call.principal);
      return slicePage(await listRepositories({ context: call, organizationIds, provider }), call.query);
    },
  }),
  defineRoute({
    id: `get${name}RepositoryBranches`,
    method: 'GET',
    path: `/account/${path}/repository/branch`,
    tag: ACCOUNT,
    summary: `List the branches of a repository of ${name}`,
    description: `Asks ${name} for the branches of the repository \`name\`, such as acme/shop. Without a token the list is empty.`,
    action: 'authenticated',
    query: schema.OwnBranchesQuery,
    answer: { status: 200, body: schema.ProvidedBranchList },
    errors: [400, 502],
    transaction: false,
    handler: async (call) => {
      const { name: repository, ...ask } = call.query;
      const organizationIds = organizationsOf(call.principal);
      return slicePage(await listBranches({ context: call, organizationIds, provider }, repository), ask);
    },
  }),
];
