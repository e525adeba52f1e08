export { gitRepositoryRoutes } from '#services/git-repository/routes.ts';
