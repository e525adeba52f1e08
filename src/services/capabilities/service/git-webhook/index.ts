export { gitWebhookRoutes } from '#services/capabilities/service/git-webhook/routes.ts';
export { gitWebhookPath, gitWebhookSecretPlace } from '#services/capabilities/service/git-webhook/service.ts';
