export { terraformRepositoryRoutes } from '#services/terraform-repository/routes.ts';
export { structuredVariables } from '#services/terraform-repository/service.ts';
export { isExpression } from '#services/terraform-repository/variables.ts';
