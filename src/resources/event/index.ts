export { eventRoutes } from '#resources/event/routes.ts';
