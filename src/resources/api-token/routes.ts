import { requireGrantable } from '#platform/access/granting.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { organizationTarget, type OrganizationTarget } from '#resources/organization/index.ts';
import * as schema from '#resources/api-token/schema.ts';
import { findBuiltInRoleIds, listTokens } from '#resources/api-token/queries.ts';
import { createToken, revokeToken, toTokenView, type TokenInput } from '#resources/api-token/service.ts';
import { apiTokenTarget, policyApiTokenTarget } from '#resources/api-token/target.ts';

/** A token of the caller's, who gives no more than they have. */
const create = ({ principal, ...call }: Call<OrganizationTarget>, input: TokenInput) => {
  const maker = { creatorId: principal.userId, parentId: principal.kind === 'token' ? principal.id : null };
  return createToken(call, call.target.organizationId, maker, input, (grant) => requireGrantable(principal, grant));
};

export const apiTokenRoutes: Route[] = [
  defineRoute({
    id: 'listOrganizationApiTokens',
    method: 'GET',
    path: '/organization/{organizationId}/apiToken',
    tag: 'Organization Api Token',
    summary: 'List the API tokens of an organization',
    description: 'Answers name, role or scope and expiry of each token, never the token itself.',
    target: organizationTarget,
    action: 'apiToken.read',
    query: schema.ApiTokenQuery,
    answer: { status: 200, body: schema.OrganizationApiTokenList },
    handler: async ({ db, target, query }) => {
      const roles = await findBuiltInRoleIds(db, target);
      return fetchPage(db, listTokens(db, target, 'plain', query), query, (row) => toTokenView(row, roles));
    },
  }),
  defineRoute({
    id: 'createOrganizationApiToken',
    method: 'POST',
    path: '/organization/{organizationId}/apiToken',
    tag: 'Organization Api Token',
    summary: 'Create an API token',
    description:
      'The token is shown in this answer only. It acts for its creator and never does more than they may: it ends when they leave the organization. One that is made with another token ends and is revoked with that.',
    target: organizationTarget,
    action: 'apiToken.edit',
    body: schema.OrganizationApiTokenCreateRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: schema.OrganizationApiTokenCreate },
    errors: [409],
    handler: (call) => create(call, call.body),
  }),
  defineRoute({
    id: 'deleteOrganizationApiToken',
    method: 'DELETE',
    path: '/organization/{organizationId}/apiToken/{apiTokenId}',
    tag: 'Organization Api Token',
    summary: 'Revoke an API token',
    description: 'Revokes the token at once, with every token that was made with it.',
    target: apiTokenTarget,
    action: 'apiToken.edit',
    answer: { status: 204, body: null },
    handler: (call) => revokeToken(call, call.target),
  }),
  defineRoute({
    id: 'listOrganizationPolicyApiTokens',
    method: 'GET',
    path: '/organization/{organizationId}/policyApiToken',
    tag: 'Organization Policy Api Token',
    summary: 'List the API tokens with a policy',
    description: 'Answers each token with its policy in Rego, never the token itself.',
    target: organizationTarget,
    action: 'apiToken.read',
    query: PageQuery,
    answer: { status: 200, body: schema.OrganizationPolicyApiTokenList },
    handler: async ({ db, target, query }) => {
      const roles = await findBuiltInRoleIds(db, target);
      return fetchPage(db, listTokens(db, target, 'policy'), query, (row) => toTokenView(row, roles));
    },
  }),
  defineRoute({
    id: 'createOrganizationPolicyApiToken',
    method: 'POST',
    path: '/organization/{organizationId}/policyApiToken',
    tag: 'Organization Policy Api Token',
    summary: 'Create an API token with a policy',
    description:
      'The policy decides on every action of the token, besides its role; without a role it may do what its creator may and the policy allows.',
    target: organizationTarget,
    action: 'apiToken.edit',
    body: schema.OrganizationPolicyApiTokenCreateRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: schema.OrganizationPolicyApiTokenCreate },
    errors: [409],
    handler: (call) => create(call, call.body),
  }),
  defineRoute({
    id: 'deleteOrganizationPolicyApiToken',
    method: 'DELETE',
    path: '/organization/{organizationId}/policyApiToken/{policyApiTokenId}',
    tag: 'Organization Policy Api Token',
    summary: 'Revoke an API token with a policy',
    description: 'Revokes the token at once, with every token that was made with it.',
    target: policyApiTokenTarget,
    action: 'apiToken.edit',
    answer: { status: 204, body: null },
    handler: (call) => revokeToken(call, call.target),
  }),
];
