export { terraformRepositoryRoutes } from '#services/terraform-repository/routes.ts';
