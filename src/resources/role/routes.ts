import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { listCustomRoles, listPlaces, listRoles } from '#resources/role/queries.ts';
import {
  OrganizationAvailableRoleList,
  OrganizationCustomRole,
  OrganizationCustomRoleCreateRequest,
  OrganizationCustomRoleList,
  OrganizationCustomRoleUpdateRequest,
} from '#resources/role/schema.ts';
import { createRole, deleteRole, editRole, getRole, toRoleView } from '#resources/role/service.ts';
import { roleTarget } from '#resources/role/target.ts';

const TAG = 'Organization Custom Role';

export const roleRoutes: Route[] = [
  defineRoute({
    id: 'listOrganizationAvailableRoles',
    method: 'GET',
    path: '/organization/{organizationId}/availableRole',
    tag: 'Organization Main Calls',
    summary: 'List the built-in and custom roles of an organization',
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
    target: organizationTarget,
    action: 'role.read',
    query: PageQuery,
    answer: { status: 200, body: OrganizationCustomRoleList },
    handler: async ({ db, target, query }) => {
      const places = await listPlaces(db, target);
      return fetchPage(db, listCustomRoles(db, target), query, (row) => toRoleView(row, places));
    },
  }),
  defineRoute({
    id: 'createOrganizationCustomRole',
    method: 'POST',
    path: '/organization/{organizationId}/customRole',
    tag: TAG,
    summary: 'Create a custom role',
    target: organizationTarget,
    action: 'role.edit',
    body: OrganizationCustomRoleCreateRequest,
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
    target: roleTarget,
    action: 'role.read',
    answer: { status: 200, body: OrganizationCustomRole },
    handler: (call) => getRole(call, call.target),
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
    target: roleTarget,
    action: 'role.edit',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => deleteRole(call, call.target),
  }),
];
