export { environmentLinkRoutes, linkRoutes } from '#services/capabilities/links/routes.ts';
export { ingressRoutes } from '#services/capabilities/links/ingress.ts';
