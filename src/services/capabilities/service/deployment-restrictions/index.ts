export { deploymentRestrictionRoutes } from '#services/capabilities/service/deployment-restrictions/routes.ts';
export { isAffected, type Restriction } from '#services/capabilities/service/deployment-restrictions/affected.ts';
export {
  insertRestrictions,
  listRestrictionsByServices,
} from '#services/capabilities/service/deployment-restrictions/queries.ts';
