export { environmentLinkRoutes, linkRoutes } from '#services/capabilities/links/routes.ts';
