export { environmentLinkRoutes, linkRoutes } from '#services/capabilities/service/links/routes.ts';
export { ingressRoutes } from '#services/capabilities/environment/links/ingress.ts';
