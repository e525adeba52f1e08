import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { ANNOTATIONS, LABELS, type GroupInput, type MetadataKind } from '#resources/metadata-group/kinds.ts';
import { listGroups, listItems } from '#resources/metadata-group/queries.ts';
import { GroupItemList } from '#resources/metadata-group/schema.ts';
import { createGroup, deleteGroup, editGroup, toItemView } from '#resources/metadata-group/service.ts';
import { groupTarget } from '#resources/metadata-group/target.ts';

/** The endpoints of a kind of group. */
function routesOf(of: MetadataKind): Route[] {
  const tag = `Organization ${of.title.replace('Group', ' Group')}`;
  const target = groupTarget(of);
  const all = `/organization/{organizationId}/${of.segment}`;
  const one = `${all}/{${of.param}}`;
  return [
    defineRoute({
      id: `listOrganization${of.title}`,
      method: 'GET',
      path: all,
      tag,
      summary: `List the ${of.name}s of an organization`,
      description: `Answers each ${of.name} with the number of services and clusters that carry it.`,
      target: organizationTarget,
      action: 'metadataGroup.read',
      query: PageQuery,
      answer: { status: 200, body: of.list },
      handler: (call) =>
        fetchPage(call.db, listGroups(call.db, call.target, of.kind), call.query, (row) => ({
          ...of.toView(row),
          associated_items_count: row.uses,
        })),
    }),
    defineRoute({
      id: `createOrganization${of.title}`,
      method: 'POST',
      path: all,
      tag,
      summary: `Create ${article(of.name)} ${of.name}`,
      description: `Makes ${article(of.name)} ${of.name}, which services and clusters can then carry.`,
      target: organizationTarget,
      action: 'metadataGroup.edit',
      body: of.request,
      answer: { status: 201, body: of.answer },
      handler: (call) => createGroup(call, of, call.target.organizationId, call.body as GroupInput),
    }),
    defineRoute({
      id: of.getId,
      method: 'GET',
      path: one,
      tag,
      summary: `Get ${article(of.name)} ${of.name}`,
      description: `Answers what the ${of.name} puts on the objects of whatever carries it.`,
      target,
      action: 'metadataGroup.read',
      answer: { status: 200, body: of.answer },
      handler: (call) => of.toView(call.target),
    }),
    defineRoute({
      id: `editOrganization${of.title}`,
      method: 'PUT',
      path: one,
      tag,
      summary: `Edit ${article(of.name)} ${of.name}`,
      description: 'What carries it shows OUT_OF_DATE until it is deployed again.',
      target,
      action: 'metadataGroup.edit',
      body: of.request,
      answer: { status: 200, body: of.answer },
      handler: (call) => editGroup(call, of, call.target, call.body as GroupInput),
    }),
    defineRoute({
      id: `deleteOrganization${of.title}`,
      method: 'DELETE',
      path: one,
      tag,
      summary: `Delete ${article(of.name)} ${of.name} that nothing carries`,
      description: `Removes the ${of.name}. 409 while a service or cluster carries it; associatedItems lists them.`,
      target,
      action: 'metadataGroup.edit',
      answer: { status: 204, body: null },
      errors: [409],
      handler: (call) => deleteGroup(call, of, call.target),
    }),
    defineRoute({
      id: `getOrganization${of.title}AssociatedItems`,
      method: 'GET',
      path: `${one}/associatedItems`,
      tag,
      summary: `List the services and clusters that carry ${article(of.name)} ${of.name}`,
      description: `Answers which services and clusters would change with the ${of.name}.`,
      target,
      action: 'metadataGroup.read',
      filtersRows: true,
      query: PageQuery,
      answer: { status: 200, body: GroupItemList },
      handler: ({ db, principal, target: group, query }) =>
        fetchPage(db, listItems(db, principal, group, group.id), query, toItemView),
    }),
  ];
}

export const metadataGroupRoutes: Route[] = [LABELS, ANNOTATIONS].flatMap(routesOf);

function article(name: string): string {
  return /^[aeiou]/.test(name) ? 'an' : 'a';
}
