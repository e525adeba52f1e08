export { organizationRoutes, type OrganizationRoutesNeeds } from '#resources/organization/routes.ts';
export { organizationTarget, findOrganization, type OrganizationTarget } from '#resources/organization/target.ts';
export { makeAdministrator, makeAdministratorToken, makeOrganization } from '#resources/organization/bootstrap.ts';
export { listServicesUsing, toServiceUseView, type Used } from '#resources/organization/inventory.ts';
export { serviceUse } from '#resources/organization/schema.ts';
