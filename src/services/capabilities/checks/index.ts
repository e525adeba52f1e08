export { checkRoutes } from '#services/capabilities/checks/routes.ts';
export type { CheckNeeds } from '#services/capabilities/checks/service.ts';
