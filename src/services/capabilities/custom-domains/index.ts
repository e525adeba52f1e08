export { customDomainRoutes } from '#services/capabilities/custom-domains/routes.ts';
export { listDomainsByServices } from '#services/capabilities/custom-domains/queries.ts';
export { deleteOtherRoutedDomains } from '#services/capabilities/custom-domains/queries.ts';
export { routeDomains } from '#services/capabilities/custom-domains/routing.ts';
export { listCertificateDomains, recordCertificate } from '#services/capabilities/custom-domains/queries.ts';
