export { callRepository, type ProviderRepository } from '#services/capabilities/service/git-webhook/providers.ts';
export { gitWebhookRoutes } from '#services/capabilities/service/git-webhook/routes.ts';
export {
  findGitToken,
  findGitWebhookById,
  hearGitWebhook,
} from '#services/capabilities/service/git-webhook/queries.ts';
export {
  gitWebhookPath,
  gitWebhookSecretPlace,
  hostOf,
  isApiOf,
  repositoryKey,
} from '#services/capabilities/service/git-webhook/service.ts';
export { removeUnusedWebhooks } from '#services/capabilities/service/git-webhook/unused.ts';
