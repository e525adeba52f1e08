export { eventStreamRoutes } from '#resources/event-stream/routes.ts';
