export { callRepository, type ProviderRepository } from '#services/capabilities/service/git-webhook/providers.ts';
export { repositoriesOf, type ServiceRepository } from '#services/capabilities/service/git-webhook/repositories.ts';
export { gitWebhookRoutes } from '#services/capabilities/service/git-webhook/routes.ts';
export { findGitWebhookById, hearGitWebhook } from '#services/capabilities/service/git-webhook/queries.ts';
export {
  gitWebhookPath,
  gitWebhookSecretPlace,
  findProviderRepository,
  isApiOf,
  repositoryKey,
  serverOf,
} from '#services/capabilities/service/git-webhook/service.ts';
export { removeUnusedWebhooks } from '#services/capabilities/service/git-webhook/unused.ts';
