export { deploymentRestrictionRoutes } from '#services/capabilities/deployment-restrictions/routes.ts';
export { isAffected, type Restriction } from '#services/capabilities/deployment-restrictions/affected.ts';
export {
  insertRestrictions,
  listRestrictionsByServices,
} from '#services/capabilities/deployment-restrictions/queries.ts';
