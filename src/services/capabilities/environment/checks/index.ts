export { checkRoutes } from '#services/capabilities/environment/checks/routes.ts';
export type { CheckNeeds } from '#services/capabilities/environment/checks/service.ts';
