export { gitTokenRoutes } from '#resources/git-token/routes.ts';
export { gitTokenTarget, type GitTokenTarget } from '#resources/git-token/target.ts';
