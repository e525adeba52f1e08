import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listExternalSecrets } from '#resources/secret-manager-access/queries.ts';
import * as schema from '#resources/secret-manager-access/schema.ts';
import { listUpstreamSecrets, toExternalSecretView } from '#resources/secret-manager-access/service.ts';
import { secretManagerAccessTarget } from '#resources/secret-manager-access/target.ts';

const tag = 'Secret Manager Access';

/** Routes for the secrets behind the accesses of clusters; the accesses are made, changed and removed with their cluster. */
export const secretManagerAccessRoutes: Route[] = [
  defineRoute({
    id: 'listUpstreamSecretsFromSecretProvider',
    method: 'GET',
    path: '/secretManagerAccess/{secretManagerAccessId}/secrets',
    tag,
    summary: 'Ask a secret manager for the names of its secrets',
    description:
      'Answers at most 2,000 names, narrowed by `namePrefix`, never a value. 502 if the manager cannot be asked.',
    target: secretManagerAccessTarget,
    action: 'cluster.read',
    query: schema.UpstreamSecretsQuery,
    answer: { status: 200, body: schema.UpstreamSecretList },
    errors: [502],
    transaction: false,
    handler: (call) => listUpstreamSecrets(call, call.target, call.query.namePrefix),
  }),
  defineRoute({
    id: 'listSecretManagerAccessExternalSecrets',
    method: 'GET',
    path: '/secretManagerAccess/{secretManagerAccessId}/associatedServices',
    tag,
    summary: 'List the variables whose values a secret manager access reads, with where they are seen',
    description:
      'Answers each variable with its project, environment or service, so that you see what a change would touch.',
    target: secretManagerAccessTarget,
    action: 'cluster.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: schema.ExternalSecretUseList },
    handler: ({ db, principal, target, query }) =>
      fetchPage(db, listExternalSecrets(db, principal, target.organizationId, target.id), query, toExternalSecretView),
  }),
];
