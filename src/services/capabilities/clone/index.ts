export { cloneRoutes, environmentCloneRoutes } from '#services/capabilities/clone/routes.ts';
