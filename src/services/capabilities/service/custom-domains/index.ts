export { customDomainRoutes } from '#services/capabilities/service/custom-domains/routes.ts';
export { listDomainsByServices } from '#services/capabilities/service/custom-domains/queries.ts';
export { deleteOtherRoutedDomains } from '#services/capabilities/service/custom-domains/queries.ts';
export { routeDomains } from '#services/capabilities/service/custom-domains/routing.ts';
export { listCertificateDomains, recordCertificate } from '#services/capabilities/service/custom-domains/queries.ts';
