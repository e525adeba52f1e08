import { AppError, badRequest } from '#kernel/errors.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';

const tag = 'Github App';

const GithubAppConnection = named(
  'OrganizationGithubAppConnectRequest',
  Type.Object({
    installation_id: Type.String({ maxLength: 255 }),
    code: Type.String({ maxLength: 2000, writeOnly: true }),
  }),
);

/**
 * Routes that refuse GitHub Apps: an app belongs to its registrant. A self-hosted installation uses git tokens
 * (docs/decisions/0043-what-only-a-hosted-service-has.md).
 */
export const githubAppRoutes: Route[] = [
  defineRoute({
    id: 'organizationGithubAppConnect',
    method: 'POST',
    path: '/organization/{organizationId}/github/connect',
    tag,
    summary: 'Connect a GitHub App: refused, with the way that is there',
    description:
      'This installation is registered as no GitHub App, so that every call is answered with 400. A git token of type GITHUB gives access to repositories instead.',
    target: organizationTarget,
    action: 'gitToken.edit',
    body: GithubAppConnection,
    answer: { status: 200, body: Type.Object({}) },
    handler: ({ target }) => {
      throw badRequest(
        `This installation is registered as no GitHub App: create a git token of type GITHUB with POST /organization/${target.id}/gitToken instead.`,
      );
    },
  }),
  defineRoute({
    id: 'organizationGithubAppDisconnect',
    method: 'DELETE',
    path: '/organization/{organizationId}/github/disconnect',
    tag,
    summary: 'Disconnect a GitHub App: none is connected',
    description: 'No GitHub App can be connected to this installation, so that every call is answered with 404.',
    target: organizationTarget,
    action: 'gitToken.edit',
    query: Type.Object({ force: Type.Optional(Type.Boolean({ description: 'Has no effect: none is connected.' })) }),
    answer: { status: 204, body: null },
    handler: () => {
      throw new AppError('not_found', 'No GitHub App is connected: repositories are reached with git tokens.');
    },
  }),
];
