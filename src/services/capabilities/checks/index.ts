export { checkRoutes } from '#services/capabilities/checks/routes.ts';
export type { CheckNeeds, RegistryFinder } from '#services/capabilities/checks/service.ts';
export type { RegistryAccess } from '#services/capabilities/checks/registry.ts';
