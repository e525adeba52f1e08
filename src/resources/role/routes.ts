import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { listCustomRoles, listRoles } from '#resources/role/queries.ts';
import {
  OrganizationAvailableRoleList,
  OrganizationCustomRole,
  OrganizationCustomRoleCreateRequest,
  OrganizationCustomRoleList,
  OrganizationCustomRoleUpdateRequest,
} from '#resources/role/schema.ts';
import { createRole, deleteRole, editRole, getRole, toRoleView, visiblePlaces } from '#resources/role/service.ts';
import { roleTarget } from '#resources/role/target.ts';

const TAG = 'Organization Custom Role';

export const roleRoutes: Route[] = [
  defineRoute({
    id: 'listOrganizationAvailableRoles',
    method: 'GET',
    path: '/organization/{organizationId}/availableRole',
    tag: 'Organization Main Calls',
    summary: 'List the built-in and custom roles of an organization',
    description:
      'Answers the roles that a member or token can get: owner, admin, devops, billing and viewer, then the custom ones.',
    target: organizationTarget,
    action: 'role.read',
    query: PageQuery,
    answer: { status: 200, body: OrganizationAvailableRoleList },
    handler: ({ db, target, query }) => fetchPage(db, listRoles(db, target), query, ({ id, name }) => ({ id, name })),
  }),
  defineRoute({
    id: 'listOrganizationCustomRoles',
    method: 'GET',
    path: '/organization/{organizationId}/customRole',
    tag: TAG,
    summary: 'List the custom roles of an organization',
    description: 'Answers each role with its permissions on the clusters and projects that you may see.',
    target: organizationTarget,
    action: 'role.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: OrganizationCustomRoleList },
    handler: async (call) => {
      const { db, principal, target, query } = call;
      const places = await visiblePlaces(call, principal, target.organizationId);
      return fetchPage(db, listCustomRoles(db, target), query, (row) => toRoleView(row, places));
    },
  }),
  defineRoute({
    id: 'createOrganizationCustomRole',
    method: 'POST',
    path: '/organization/{organizationId}/customRole',
    tag: TAG,
    summary: 'Create a custom role',
    description: 'A project that the role does not name is NO_ACCESS. 409 if the organization has a role of that name.',
    target: organizationTarget,
    action: 'role.edit',
    body: OrganizationCustomRoleCreateRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: OrganizationCustomRole },
    errors: [409],
    handler: (call) => createRole(call, call.principal, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getOrganizationCustomRole',
    method: 'GET',
    path: '/organization/{organizationId}/customRole/{customRoleId}',
    tag: TAG,
    summary: 'Get a custom role',
    description: 'Answers the permissions of the role on the clusters and projects that you may see.',
    target: roleTarget,
    action: 'role.read',
    filtersRows: true,
    answer: { status: 200, body: OrganizationCustomRole },
    handler: (call) => getRole(call, call.principal, call.target),
  }),
  defineRoute({
    id: 'editOrganizationCustomRole',
    method: 'PUT',
    path: '/organization/{organizationId}/customRole/{customRoleId}',
    tag: TAG,
    summary: 'Edit a custom role',
    description: 'Whoever has it may do at once what it says now. A list of permissions that is left out stays.',
    target: roleTarget,
    action: 'role.edit',
    body: OrganizationCustomRoleUpdateRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: OrganizationCustomRole },
    errors: [409],
    handler: (call) => editRole(call, call.principal, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteOrganizationCustomRole',
    method: 'DELETE',
    path: '/organization/{organizationId}/customRole/{customRoleId}',
    tag: TAG,
    summary: 'Delete a custom role that nobody has',
    description: 'Removes the role. 409 while members, invitations or tokens have it.',
    target: roleTarget,
    action: 'role.edit',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => deleteRole(call, call.target),
  }),
];
