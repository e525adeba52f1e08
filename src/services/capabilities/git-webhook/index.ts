export { gitWebhookRoutes } from '#services/capabilities/git-webhook/routes.ts';
export { gitWebhookPath, gitWebhookSecretPlace } from '#services/capabilities/git-webhook/service.ts';
