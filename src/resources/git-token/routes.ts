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
    target: organizationTarget,
    action: 'gitToken.edit',
    body: schema.GitTokenRequest,
    answer: { status: 201, body: schema.GitToken },
    handler: (call) => createGitToken(call, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getOrganizationGitToken',
    method: 'GET',
    path: '/organization/{organizationId}/gitToken/{gitTokenId}',
    tag: TAG,
    summary: 'Get a git token',
    target: gitTokenTarget,
    action: 'gitToken.read',
    answer: { status: 200, body: schema.GitToken },
    handler: ({ target }) => toGitTokenView(target),
  }),
  defineRoute({
    id: 'editGitToken',
    method: 'PUT',
    path: '/organization/{organizationId}/gitToken/{gitTokenId}',
    tag: TAG,
    summary: 'Edit a git token',
    target: gitTokenTarget,
    action: 'gitToken.edit',
    body: schema.GitTokenEditRequest,
    answer: { status: 200, body: schema.GitToken },
    handler: (call) => editGitToken(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteGitToken',
    method: 'DELETE',
    path: '/organization/{organizationId}/gitToken/{gitTokenId}',
    tag: TAG,
    summary: 'Delete a git token that no service uses',
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
    target: gitTokenTarget,
    action: 'gitToken.read',
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
