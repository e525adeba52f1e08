export { gitWebhookRoutes } from '#services/capabilities/git-webhook/routes.ts';
export { gitWebhookPath, gitWebhookSecretPlace, repositoryKey } from '#services/capabilities/git-webhook/service.ts';
