import type { Principal } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import { fetchPage, slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import * as inventory from '#resources/organization/inventory.ts';
import * as schema from '#resources/organization/schema.ts';
import {
  createOrganization,
  deleteOrganization,
  editOrganization,
  getOrganization,
  listOrganizations,
} from '#resources/organization/service.ts';
import { organizationItself, organizationTarget } from '#resources/organization/target.ts';

const TAG = 'Organization Main Calls';

export interface OrganizationRoutesNeeds {
  /** The organization's credentials of cloud providers, each with the clusters that use it, without their secrets. */
  listCredentials(
    context: Context,
    principal: Principal,
    organizationId: string,
  ): Promise<schema.OrganizationCredentials[]>;
}

const organizations: Route[] = [
  defineRoute({
    id: 'listOrganization',
    method: 'GET',
    path: '/organization',
    tag: TAG,
    summary: 'List your organizations',
    description:
      'Answers the organizations that you are a member of. If there is just one, its `id`, `name` and `created_at` stand at the top level too.',
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: schema.OrganizationList },
    handler: (call) => listOrganizations(call, call.principal, call.query),
  }),
  defineRoute({
    id: 'createOrganization',
    method: 'POST',
    path: '/organization',
    tag: TAG,
    summary: 'Create an organization',
    description: 'For the first administrator, unless the settings open it to everybody.',
    action: 'authenticated',
    body: schema.OrganizationRequest,
    answer: { status: 201, body: schema.Organization },
    errors: [409],
    handler: (call) => createOrganization(call, call.principal, call.body),
  }),
  defineRoute({
    id: 'getOrganization',
    method: 'GET',
    path: '/organization/{organizationId}',
    tag: TAG,
    summary: 'Get an organization',
    description: 'Answers name, plan and contact details. The plan is a word for clients: it limits nothing.',
    target: organizationTarget,
    action: 'organization.read',
    answer: { status: 200, body: schema.Organization },
    handler: (call) => getOrganization(call, call.target.id),
  }),
  defineRoute({
    id: 'editOrganization',
    method: 'PUT',
    path: '/organization/{organizationId}',
    tag: TAG,
    summary: 'Edit an organization',
    description:
      'Changes the named fields; fields that are left out keep their values. 409 if another organization has the name.',
    target: organizationItself,
    action: 'organization.edit',
    body: schema.OrganizationEditRequest,
    answer: { status: 200, body: schema.Organization },
    errors: [409],
    handler: (call) => editOrganization(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteOrganization',
    method: 'DELETE',
    path: '/organization/{organizationId}',
    tag: TAG,
    summary: 'Delete an organization that has no clusters',
    description:
      'Deletes the organization with everything in it. 409 while it has clusters: what runs there must be torn down first.',
    target: organizationItself,
    action: 'organization.delete',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => deleteOrganization(call, call.target),
  }),
];

const inventories: Route[] = [
  defineRoute({
    id: 'listServicesByOrganizationId',
    method: 'GET',
    path: '/organization/{organizationId}/services',
    tag: TAG,
    summary: 'List the services of an organization',
    description:
      'Answers the services that you may read, with project, environment and cluster; the query narrows the list to one of these.',
    target: organizationTarget,
    action: 'organization.read',
    filtersRows: true,
    query: schema.ServicesQuery,
    answer: { status: 200, body: schema.ServiceLightList },
    handler: ({ db, principal, target, query }) =>
      fetchPage(db, inventory.listServices(db, principal, target.id, query), query, inventory.toServiceLightView),
  }),
  defineRoute({
    id: 'listEnvironmentsByOrganizationId',
    method: 'GET',
    path: '/organization/{organizationId}/environments',
    tag: TAG,
    summary: 'List the environments of an organization',
    description: 'Answers the environments that you may read, of all projects.',
    target: organizationTarget,
    action: 'organization.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: schema.OrganizationEnvironmentList },
    handler: ({ db, principal, target, query }) =>
      fetchPage(db, inventory.listEnvironments(db, principal, target.id), query, inventory.toEnvironmentLightView),
  }),
];

const credentials = ({ listCredentials }: OrganizationRoutesNeeds): Route =>
  defineRoute({
    id: 'listOrganizationCredentials',
    method: 'GET',
    path: '/organization/{organizationId}/credentials',
    tag: TAG,
    summary: 'List the credentials of cloud providers, with the clusters that use them',
    description:
      'Answers the credentials of every provider without their secrets, each with those clusters that name them and that you may see.',
    target: organizationTarget,
    action: 'credentials.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: schema.OrganizationCredentialsList },
    handler: async (call) => slicePage(await listCredentials(call, call.principal, call.target.id), call.query),
  });

export const organizationRoutes = (needs: OrganizationRoutesNeeds): Route[] => [
  ...organizations,
  ...inventories,
  credentials(needs),
];
