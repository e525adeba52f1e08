import { defineRoute, type Route } from '#platform/http/route.ts';
import { wholeList } from '#platform/http/paging.ts';
import * as schema from '#resources/enterprise-connection/schema.ts';
import * as service from '#resources/enterprise-connection/service.ts';
import { organizationTarget } from '#resources/organization/index.ts';

const tag = 'Organization Enterprise Connection';
const PATH = '/organization/{organizationId}/enterpriseconnection';

/** Connections of an organization to the identity provider, whose groups become roles. */
export const enterpriseConnectionRoutes: Route[] = [
  defineRoute({
    id: 'listOrganizationEnterpriseConnections',
    method: 'GET',
    path: PATH,
    tag,
    summary: 'List the enterprise connections of an organization',
    description:
      'There is one at most, as the installation has one identity provider. The list is empty where its groups are not read.',
    target: organizationTarget,
    action: 'enterpriseConnection.read',
    answer: { status: 200, body: schema.EnterpriseConnectionList },
    handler: async (call) => wholeList(await service.listConnections(call, call.target.organizationId)),
  }),
  defineRoute({
    id: 'getOrganizationEnterpriseConnection',
    method: 'GET',
    path: `${PATH}/{connectionName}`,
    tag,
    summary: 'Get an enterprise connection',
    description: 'Answers which roles the groups of the identity provider give.',
    target: organizationTarget,
    action: 'enterpriseConnection.read',
    answer: { status: 200, body: schema.EnterpriseConnection },
    handler: (call) => service.getConnection(call, call.target.organizationId, call.params.connectionName),
  }),
  defineRoute({
    id: 'updateOrganizationEnterpriseConnection',
    method: 'PUT',
    path: `${PATH}/{connectionName}`,
    tag,
    summary: 'Set which roles the groups of the identity provider give',
    description:
      'Makes the connection if the organization has none. The keys of group_mappings are roles, by name or id, their values lists of groups. People in several groups get the highest role, people in none the default role, or none where it is "". With enforce_group_sync each sign-in replaces the role; otherwise only the first one gives a role. The last owner stays.',
    target: organizationTarget,
    action: 'enterpriseConnection.edit',
    body: schema.EnterpriseConnection,
    answer: { status: 200, body: schema.EnterpriseConnection },
    errors: [409],
    handler: (call) =>
      service.saveConnection(
        call,
        call.principal,
        call.target.organizationId,
        call.params.connectionName,
        call.body as schema.ConnectionInput,
      ),
  }),
];
