export { eventRoutes } from '#resources/event/routes.ts';
export { Event } from '#resources/event/schema.ts';
export { toEventView } from '#resources/event/service.ts';
