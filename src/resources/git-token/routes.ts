import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listServicesUsing, organizationTarget, toServiceUseView } from '#resources/organization/index.ts';
import { listGitTokens } from '#resources/git-token/queries.ts';
import * as schema from '#resources/git-token/schema.ts';
import { createGitToken, deleteGitToken, editGitToken, toGitTokenView } from '#resources/git-token/service.ts';
import { gitTokenTarget } from '#resources/git-token/target.ts';

const TAG = 'Organization Main Calls';

export const gitTokenRoutes: Route[] = [
  defineRoute({
    id: 'listOrganizationGitTokens',
    method: 'GET',
    path: '/organization/{organizationId}/gitToken',
    tag: TAG,
    summary: 'List the git tokens of an organization',
    description: 'Answers each token with its provider, expiry and number of services, never the token itself.',
    target: organizationTarget,
    action: 'gitToken.read',
    query: PageQuery,
    answer: { status: 200, body: schema.GitTokenList },
    handler: ({ db, target, query }) => fetchPage(db, listGitTokens(db, target), query, toGitTokenView),
  }),
  defineRoute({
    id: 'createGitToken',
    method: 'POST',
    path: '/organization/{organizationId}/gitToken',
    tag: TAG,
    summary: 'Create a git token',
    description:
      "Stores the token encrypted. It is sent only to `git_api_url`, which defaults to the provider's own API.",
    target: organizationTarget,
    action: 'gitToken.edit',
    body: schema.GitTokenRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: schema.GitToken },
    handler: (call) => createGitToken(call, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getOrganizationGitToken',
    method: 'GET',
    path: '/organization/{organizationId}/gitToken/{gitTokenId}',
    tag: TAG,
    summary: 'Get a git token',
    description: 'Answers provider, expiry and number of services, never the token itself.',
    target: gitTokenTarget,
    action: 'gitToken.read',
    answer: { status: 200, body: schema.GitToken },
    readsOnlyTarget: true,
    handler: ({ target }) => toGitTokenView(target),
  }),
  defineRoute({
    id: 'editGitToken',
    method: 'PUT',
    path: '/organization/{organizationId}/gitToken/{gitTokenId}',
    tag: TAG,
    summary: 'Edit a git token',
    description:
      'Fields that are left out keep their values, the token too. Another provider or address takes the token again.',
    target: gitTokenTarget,
    action: 'gitToken.edit',
    body: schema.GitTokenEditRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: schema.GitToken },
    handler: (call) => editGitToken(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteGitToken',
    method: 'DELETE',
    path: '/organization/{organizationId}/gitToken/{gitTokenId}',
    tag: TAG,
    summary: 'Delete a git token that no service uses',
    description: 'Removes the token. 409 while services use it; associatedServices lists them.',
    target: gitTokenTarget,
    action: 'gitToken.edit',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => deleteGitToken(call, call.target),
  }),
  defineRoute({
    id: 'getGitTokenAssociatedServices',
    method: 'GET',
    path: '/organization/{organizationId}/gitToken/{gitTokenId}/associatedServices',
    tag: TAG,
    summary: 'List the services that use a git token',
    description: 'Answers every service whose repository is read with this token, with its environment and project.',
    target: gitTokenTarget,
    action: 'gitToken.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: schema.GitTokenAssociatedServiceList },
    handler: ({ db, principal, target, query }) =>
      fetchPage(
        db,
        listServicesUsing(db, principal, target.organizationId, { gitTokenId: target.id }),
        query,
        toServiceUseView,
      ),
  }),
];
