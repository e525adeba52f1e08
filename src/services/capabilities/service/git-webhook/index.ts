export { gitWebhookRoutes } from '#services/capabilities/service/git-webhook/routes.ts';
export { findGitWebhookById, hearGitWebhook } from '#services/capabilities/service/git-webhook/queries.ts';
export {
  gitWebhookPath,
  gitWebhookSecretPlace,
  repositoryKey,
} from '#services/capabilities/service/git-webhook/service.ts';
export { removeUnusedWebhooks } from '#services/capabilities/service/git-webhook/unused.ts';
