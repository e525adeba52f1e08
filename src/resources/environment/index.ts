export { environmentRoutes } from '#resources/environment/routes.ts';
export { environmentTarget, type EnvironmentTarget } from '#resources/environment/target.ts';
export {
  createEnvironment,
  DEFAULT_STAGES,
  environmentOfNamespace,
  kubernetesNamespaceOf,
  makeEnvironment,
  placeOf,
  withRule,
  toEnvironmentView,
} from '#resources/environment/service.ts';
export {
  findEnvironmentById,
  isExpired,
  isOfFork,
  listExpired,
  setExpiry,
  setForkCommit,
  touchEnvironment,
  type EnvironmentRow,
  type ExpiredEnvironment,
  type ForkHead,
} from '#resources/environment/queries.ts';
export { Environment, EnvironmentMode } from '#resources/environment/schema.ts';
