export { credentialsRoutes } from '#resources/credentials/routes.ts';
export { holdCredentials } from '#resources/credentials/queries.ts';
export { listCredentialsWithClusters } from '#resources/credentials/service.ts';
