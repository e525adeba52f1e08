export { secretManagerAccessRoutes } from '#resources/secret-manager-access/routes.ts';
export { readExternalSecrets } from '#resources/secret-manager-access/external.ts';
