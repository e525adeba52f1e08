export { webhookRoutes } from '#resources/webhook/routes.ts';
export { secretPlace as webhookSecretPlace } from '#resources/webhook/service.ts';
