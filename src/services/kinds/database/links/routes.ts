import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { ListOf, named, PageQuery, Type } from '#platform/http/schema.ts';
import type { Kind } from '#services/kind.ts';
import { listLinkedApplications } from '#services/kinds/database/links/queries.ts';
import { DEFAULT_KEY, linkApplication, unlinkApplication } from '#services/kinds/database/links/service.ts';
import { databaseTarget } from '#services/kinds/database/routes.ts';
import { toServiceView } from '#services/service/service.ts';

const one = '/database/{databaseId}/application/{targetApplicationId}';
const shared = { tag: 'Database Application', target: databaseTarget };

const LinkRequest = named(
  'DatabaseLinkRequest',
  Type.Object({
    key: Type.Optional(
      Type.String({ default: DEFAULT_KEY, description: "Key under which the application gets the database's URL." }),
    ),
  }),
);

/** Endpoints that list, link and unlink the applications of a database. */
export const linkedApplicationRoutes = (application: Kind): Route[] => [
  defineRoute({
    ...shared,
    id: 'listDatabaseApplication',
    method: 'GET',
    path: '/database/{databaseId}/application',
    summary: 'List the applications that are linked with a database',
    description: 'Answers the applications whole, in the form of GET /application/{applicationId}.',
    action: 'service.read',
    query: PageQuery,
    answer: { status: 200, body: ListOf(application.schemas.answer) },
    handler: (call) =>
      fetchPage(call.db, listLinkedApplications(call.db, call.target, call.target.id), call.query, (row) =>
        toServiceView(call, application, row),
      ),
  }),
  defineRoute({
    ...shared,
    id: 'linkApplicationToDatabase',
    method: 'POST',
    path: one,
    summary: 'Link an application with a database of its environment',
    description: "The application gets an alias of the database's URL, a secret; from its next deployment on.",
    action: 'service.edit',
    body: LinkRequest,
    optionalBody: true,
    answer: { status: 200, body: application.schemas.answer },
    errors: [409],
    handler: async (call) =>
      toServiceView(
        call,
        application,
        await linkApplication(call, call.params.targetApplicationId, call.body.key ?? DEFAULT_KEY),
      ),
  }),
  defineRoute({
    ...shared,
    id: 'removeApplicationFromDatabase',
    method: 'DELETE',
    path: one,
    summary: 'Take the link of an application with a database back, and the alias that it made',
    description: 'The application loses the variable from its next deployment on.',
    action: 'service.edit',
    answer: { status: 204, body: null },
    handler: (call) => unlinkApplication(call, call.params.targetApplicationId),
  }),
];
