import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { ListOf, PageQuery, Type } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { holderOf, paramOf, type CommonInput, type Kind } from '#services/kind.ts';
import { listServicesByEnvironment } from '#services/service/queries.ts';
import { createService, editService, toServiceView } from '#services/service/service.ts';

const ListQuery = Type.Object({
  ...PageQuery.properties,
  toUpdate: Type.Optional(
    Type.Boolean({
      description: 'Only those whose newest recorded commit is not the deployed one; false: only the others.',
    }),
  ),
});

/** List, create, get and edit of a kind. Delete is an action: it tears down what runs. */
export function serviceRoutes(kind: Kind): Route[] {
  const { target } = holderOf(kind);
  const one = `/${kind.path}/{${paramOf(kind)}}` as const;
  return [
    defineRoute({
      id: `list${kind.tag}`,
      method: 'GET',
      path: `/environment/{environmentId}/${kind.path}`,
      tag: kind.listTag,
      summary: `List the services of kind ${kind.path} of an environment`,
      target: environmentTarget,
      action: 'environment.read',
      query: ListQuery,
      answer: { status: 200, body: ListOf(kind.schemas.answer) },
      handler: (call) => {
        const { toUpdate } = call.query;
        const rows = listServicesByEnvironment(call.db, call.target, call.target.id, kind.kind, toUpdate);
        return fetchPage(call.db, rows, call.query, (row) => toServiceView(call, kind, row));
      },
    }),
    defineRoute({
      id: `create${kind.tag}`,
      method: 'POST',
      path: `/environment/{environmentId}/${kind.path}`,
      tag: kind.listTag,
      summary: `Create a service of kind ${kind.path}`,
      target: environmentTarget,
      action: 'service.create',
      body: kind.schemas.create,
      answer: { status: 201, body: kind.schemas.answer },
      errors: [409],
      handler: (call) => createService(call, kind, call.target, call.body as unknown as CommonInput),
    }),
    defineRoute({
      id: `get${kind.tag}`,
      method: 'GET',
      path: one,
      tag: `${kind.tag} Main Calls`,
      summary: `Get a service of kind ${kind.path}`,
      target,
      action: 'service.read',
      answer: { status: 200, body: kind.schemas.answer },
      handler: (call) => toServiceView(call, kind, call.target),
    }),
    defineRoute({
      id: `edit${kind.tag}`,
      method: 'PUT',
      path: one,
      tag: `${kind.tag} Main Calls`,
      summary: `Edit a service of kind ${kind.path}`,
      target,
      action: 'service.edit',
      body: kind.schemas.edit,
      answer: { status: 200, body: kind.schemas.answer },
      errors: [409],
      handler: (call) => editService(call, kind, call.target, call.body as unknown as CommonInput),
    }),
  ];
}
