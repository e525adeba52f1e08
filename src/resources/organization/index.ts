export { organizationRoutes, type OrganizationRoutesNeeds } from '#resources/organization/routes.ts';
export { organizationItself, organizationTarget, type OrganizationTarget } from '#resources/organization/target.ts';
export { foreignOrganization, requireOrganization } from '#resources/organization/named.ts';
export {
  hasOrganization,
  makeAdministrator,
  makeAdministratorToken,
  makeOrganization,
} from '#resources/organization/bootstrap.ts';
export { jobTypeOf, listServicesUsing, toServiceUseView } from '#resources/organization/inventory.ts';
export {
  ClusterCredentials,
  Organization,
  Plan,
  ServiceLight,
  ServiceType,
  serviceUse,
  type OrganizationCredentials,
} from '#resources/organization/schema.ts';
export { editOrganization, getOrganization } from '#resources/organization/service.ts';
export { lockOrganization } from '#resources/organization/queries.ts';
