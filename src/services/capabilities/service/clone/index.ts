export { copyServices, keepModeOfSecrets, placeIn, type CopyRight } from '#services/capabilities/service/clone/copy.ts';
export { cloneRoutes } from '#services/capabilities/service/clone/routes.ts';
