export { checkRoutes } from '#services/capabilities/checks/routes.ts';
export type { CheckNeeds, RegistryFinder } from '#services/capabilities/checks/service.ts';
