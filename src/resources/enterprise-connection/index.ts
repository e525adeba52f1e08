import { AppError } from '#kernel/errors.ts';
import { wholeList } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { ListOf, named, Type } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';

const tag = 'Organization Enterprise Connection';
const PATH = '/organization/{organizationId}/enterpriseconnection';
const TEXT = Type.String({ maxLength: 255 });

const EnterpriseConnection = named(
  'EnterpriseConnection',
  Type.Object({
    connection_name: TEXT,
    default_role: TEXT,
    enforce_group_sync: Type.Boolean(),
    group_mappings: Type.Object(
      {},
      { additionalProperties: Type.Array(TEXT, { maxItems: 1000 }), maxProperties: 1000 },
    ),
  }),
);

const notConnected = (): never => {
  throw new AppError(
    'not_found',
    'Enterprise connection not found. Sessions come from the identity provider of QUARTERDECK_OIDC_ISSUER, whose groups are not read: invite members and give them roles.',
  );
};

/**
 * Connections of an organization to identity providers, whose groups become roles. None can be made here: a mapping that is stored and never
 * applied would look like protection (decision 0043).
 */
export const enterpriseConnectionRoutes: Route[] = [
  defineRoute({
    id: 'listOrganizationEnterpriseConnections',
    method: 'GET',
    path: PATH,
    tag,
    summary: 'List the enterprise connections of an organization: none',
    description: 'The list is empty: groups of the identity provider are not mapped to roles by this installation.',
    target: organizationTarget,
    action: 'enterpriseConnection.read',
    answer: { status: 200, body: ListOf(EnterpriseConnection) },
    handler: () => wholeList([]),
  }),
  defineRoute({
    id: 'getOrganizationEnterpriseConnection',
    method: 'GET',
    path: `${PATH}/{connectionName}`,
    tag,
    summary: 'Get an enterprise connection: there is none',
    description: 'Every call is answered with 404, whose message says how members sign in instead.',
    target: organizationTarget,
    action: 'enterpriseConnection.read',
    answer: { status: 200, body: EnterpriseConnection },
    handler: notConnected,
  }),
  defineRoute({
    id: 'updateOrganizationEnterpriseConnection',
    method: 'PUT',
    path: `${PATH}/{connectionName}`,
    tag,
    summary: 'Change which roles the groups of a connection give: there is none',
    description:
      'Every call is answered with 404 and nothing is stored: a mapping that is never applied would look like protection.',
    target: organizationTarget,
    action: 'enterpriseConnection.edit',
    body: EnterpriseConnection,
    answer: { status: 200, body: EnterpriseConnection },
    handler: notConnected,
  }),
];
