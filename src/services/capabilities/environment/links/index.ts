export { environmentLinkRoutes } from '#services/capabilities/environment/links/routes.ts';
