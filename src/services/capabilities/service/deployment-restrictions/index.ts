export { isAffected } from '#services/capabilities/service/deployment-restrictions/affected.ts';
export { deploymentRestrictionRoutes } from '#services/capabilities/service/deployment-restrictions/routes.ts';
export {
  insertRestrictions,
  listRestrictionsByServices,
} from '#services/capabilities/service/deployment-restrictions/queries.ts';
