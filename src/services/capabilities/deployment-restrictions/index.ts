export { deploymentRestrictionRoutes } from '#services/capabilities/deployment-restrictions/routes.ts';
export {
  insertRestrictions,
  listRestrictionsByServices,
} from '#services/capabilities/deployment-restrictions/queries.ts';
