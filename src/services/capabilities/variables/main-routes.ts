import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import type { RecordScope } from '#deployments/model/variables.ts';
import { effectiveVariables } from '#services/capabilities/variables/effective.ts';
import { importVariables } from '#services/capabilities/variables/import.ts';
import { loadLine, placeOf, type Place } from '#services/capabilities/variables/line.ts';
import { findParent, sourceTarget, variableTarget } from '#services/capabilities/variables/parents.ts';
import * as schema from '#services/capabilities/variables/schema.ts';
import * as service from '#services/capabilities/variables/service.ts';
import { toMainView } from '#services/capabilities/variables/views.ts';
import type { VariableScope } from '#services/service/holder.ts';
import { serviceTarget } from '#services/service/target.ts';

const tag = 'Variable Main Calls';
const one = '/variable/{variableId}';

/** Imports into a service, and into its environment and project if the import names them. Throws 403 where the caller may not write. */
export async function importInto(call: Call<unknown>, place: Place, input: schema.ImportInput) {
  const named = new Set(input.vars.map((item) => item.scope));
  const holders: Partial<Record<RecordScope, Place>> = { [place.scope]: place };
  const above = { ENVIRONMENT: place.environmentId!, PROJECT: place.projectId };
  for (const scope of ['ENVIRONMENT', 'PROJECT'] as const)
    if (named.has(scope)) {
      const fields = { scope: 'vars', id: 'vars' };
      holders[scope] = await findParent(call, { scope, id: above[scope], fields, in: 'body' }, 'variable.edit');
    }
  return importVariables(call, place, holders, input);
}

/** Variables and secrets of every holder under one path. */
export const mainVariableRoutes: Route[] = [
  defineRoute({
    id: 'listVariables',
    method: 'GET',
    path: '/variable',
    tag,
    summary: 'List the variables and secrets that are seen from a project, an environment or a service',
    description:
      'Answers inherited and built-in records too, the overridden ones included; values of secrets are left out.',
    action: 'authenticated',
    query: schema.VariableQuery,
    answer: { status: 200, body: schema.VariableList },
    errors: [403, 404],
    handler: async (call) => {
      const { parent_id: id, scope, is_secret: isSecret, ...ask } = call.query;
      const fields = { scope: 'scope', id: 'parent_id' };
      const place = await findParent(call, { scope, id, fields, in: 'query' }, 'variable.read');
      const { entries, byId } = await loadLine(call, place);
      const wanted = entries.filter((entry) => isSecret === undefined || (entry.isSecret ?? false) === isSecret);
      const page = slicePage(wanted, ask);
      return { ...page, results: page.results.map((entry) => toMainView({ entry, byId })) };
    },
  }),
  defineRoute({
    id: 'createVariable',
    method: 'POST',
    path: '/variable',
    tag,
    summary: 'Create a variable or a secret',
    description:
      '`variable_scope` and `variable_parent_id` say where it stands. `is_secret` makes a secret, whose value is never answered.',
    action: 'authenticated',
    body: schema.MainVariableRequest,
    answer: { status: 201, body: schema.Variable },
    errors: [403, 409],
    handler: async (call) => {
      const { variable_scope: scope, variable_parent_id: id, is_secret: isSecret, ...input } = call.body;
      const fields = { scope: 'variable_scope', id: 'variable_parent_id' };
      const place = await findParent(call, { scope, id, fields, in: 'body' }, 'variable.edit');
      return toMainView(await service.createVariable(call, place, isSecret, input));
    },
  }),
  defineRoute({
    id: 'importEnvironmentVariables',
    method: 'POST',
    path: '/variable/import',
    tag,
    summary: 'Import variables and secrets into a service',
    description: 'Each succeeds or fails for itself. A key that is taken needs overwrite.',
    action: 'authenticated',
    query: schema.ImportQuery,
    body: schema.ImportRequest,
    answer: { status: 201, body: schema.ImportResult },
    errors: [403, 404],
    handler: async (call) => {
      const { service_id: id, service_type: scope } = call.query;
      const fields = { scope: 'service_type', id: 'service_id' };
      const place = await findParent(call, { scope, id, fields, in: 'query' }, 'variable.edit');
      return importInto(call, place, call.body);
    },
  }),
  defineRoute({
    id: 'getVariable',
    method: 'GET',
    path: one,
    tag,
    summary: 'Get a variable or a secret',
    description: 'Answers the record with its scope; the value of a secret is left out.',
    target: variableTarget,
    action: 'variable.read',
    answer: { status: 200, body: schema.Variable },
    handler: async (call) =>
      toMainView(await service.findVisible(call, ownPlace(call), call.params.variableId, undefined)),
  }),
  defineRoute({
    id: 'editVariable',
    method: 'PUT',
    path: one,
    tag,
    summary: 'Edit a variable or a secret',
    description: 'What is left out stays. Overrides of it keep its key.',
    target: variableTarget,
    action: 'variable.edit',
    body: schema.MainVariableEditRequest,
    answer: { status: 200, body: schema.Variable },
    errors: [400, 409],
    handler: async (call) =>
      toMainView(await service.editVariable(call, ownPlace(call), call.params.variableId, undefined, call.body)),
  }),
  defineRoute({
    id: 'deleteVariable',
    method: 'DELETE',
    path: one,
    tag,
    summary: 'Delete a variable or a secret with what overrides it and its aliases',
    description: 'Overrides and aliases disappear with their source. A built-in one cannot be deleted.',
    target: variableTarget,
    action: 'variable.edit',
    answer: { status: 204, body: null },
    errors: [400],
    handler: (call) => service.removeVariable(call, ownPlace(call), call.params.variableId, undefined),
  }),
  defineRoute({
    id: 'createVariableOverride',
    method: 'POST',
    path: `${one}/override`,
    tag,
    summary: 'Give a variable or secret another value in a lower scope',
    description: 'The scope of the body must be lower than that of the source, in the same line of descent.',
    target: sourceTarget,
    action: 'variable.read',
    body: schema.MainOverrideRequest,
    answer: { status: 201, body: schema.Variable },
    errors: [400, 409],
    handler: async (call) => {
      const { override_scope: scope, override_parent_id: id, ...input } = call.body;
      const fields = { scope: 'override_scope', id: 'override_parent_id' };
      const place = await findParent(call, { scope, id, fields, in: 'body' }, 'variable.edit');
      return toMainView(await service.overrideVariable(call, place, call.params.variableId, undefined, input));
    },
  }),
  defineRoute({
    id: 'createVariableAlias',
    method: 'POST',
    path: `${one}/alias`,
    tag,
    summary: 'Give a variable or secret a second key',
    description: 'The alias always has the value that its source has. An alias of an alias is refused.',
    target: sourceTarget,
    action: 'variable.read',
    body: schema.MainAliasRequest,
    answer: { status: 201, body: schema.Variable },
    errors: [400, 409],
    handler: async (call) => {
      const { alias_scope: scope, alias_parent_id: id, ...input } = call.body;
      const fields = { scope: 'alias_scope', id: 'alias_parent_id' };
      const place = await findParent(call, { scope, id, fields, in: 'body' }, 'variable.edit');
      return toMainView(await service.aliasVariable(call, place, call.params.variableId, undefined, input));
    },
  }),
  defineRoute({
    id: 'listEffectiveVariables',
    method: 'GET',
    path: '/service/{serviceId}/effectiveVariables',
    tag,
    summary: 'List what a deployment of a service would give it now',
    description: 'One value for each key, expanded, with where it comes from; values of secrets are left out.',
    target: serviceTarget('serviceId', 'Service'),
    action: 'variable.read',
    answer: { status: 200, body: schema.EffectiveVariableList },
    handler: (call) => effectiveVariables(call, placeOf(call.target, call.target.kind as VariableScope)),
  }),
];

const ownPlace = (call: Call<Parameters<typeof placeOf>[0] & { scope: VariableScope }>): Place =>
  placeOf(call.target, call.target.scope);
