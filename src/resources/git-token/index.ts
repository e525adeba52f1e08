export { gitTokenRoutes } from '#resources/git-token/routes.ts';
