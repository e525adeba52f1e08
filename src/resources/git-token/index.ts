export { openTokenCredentials, type TokenCredentials } from '#resources/git-token/credentials.ts';
export { gitTokenRoutes } from '#resources/git-token/routes.ts';
export { isServerOf } from '#resources/git-token/server.ts';
export { accessOf } from '#resources/git-token/service.ts';
export { findGitTokenById, listUsableGitTokens, type GitTokenRow } from '#resources/git-token/queries.ts';
export {
  apiRoot,
  askProvider,
  GIT_PROVIDERS,
  ProviderError,
  toAppError,
  type Provider,
  type ProviderAccess,
} from '#resources/git-token/provider.ts';
export { listProvidedBranches, listProvidedRepositories } from '#resources/git-token/repositories.ts';
