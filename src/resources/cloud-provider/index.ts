export { cloudProviderRoutes } from '#resources/cloud-provider/routes.ts';
