export { customDomainRoutes } from '#services/capabilities/custom-domains/routes.ts';
export { listDomainsByServices } from '#services/capabilities/custom-domains/queries.ts';
