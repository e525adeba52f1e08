export { ingressRoutes } from '#services/capabilities/service/links/ingress.ts';
export { listLinks } from '#services/capabilities/service/links/list.ts';
export { linkRoutes } from '#services/capabilities/service/links/routes.ts';
export { LinkList } from '#services/capabilities/service/links/schema.ts';
