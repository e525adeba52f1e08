export { alertReceiverRoutes } from '#resources/alert-receiver/routes.ts';
