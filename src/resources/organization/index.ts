export { organizationTarget, findOrganization, type OrganizationTarget } from '#resources/organization/target.ts';
export { makeAdministrator, makeAdministratorToken, makeOrganization } from '#resources/organization/bootstrap.ts';
