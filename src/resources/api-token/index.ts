export { apiTokenRoutes } from '#resources/api-token/routes.ts';
export { createApiToken, listApiTokens, revokeApiToken } from '#resources/api-token/command-line.ts';
export { revokeTokensOf } from '#resources/api-token/service.ts';
