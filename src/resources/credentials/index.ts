export { credentialsRoutes } from '#resources/credentials/routes.ts';
export { findCredentialsById } from '#resources/credentials/queries.ts';
export { listCredentialsWithClusters } from '#resources/credentials/service.ts';
