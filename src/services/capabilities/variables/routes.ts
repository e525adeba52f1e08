import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { PageQuery, type TSchema } from '#platform/http/schema.ts';
import { loadLine, placeOf } from '#services/capabilities/variables/line.ts';
import { importInto } from '#services/capabilities/variables/main-routes.ts';
import * as schema from '#services/capabilities/variables/schema.ts';
import * as service from '#services/capabilities/variables/service.ts';
import { toSecretView, toVariableView, type Found } from '#services/capabilities/variables/views.ts';
import type { Holder, HolderTarget } from '#services/service/holder.ts';

/** Paths, names and views of either variables or secrets. Both follow the same rules. */
interface Sort {
  wanted: 'variable' | 'secret';
  /** Last segment of the paths; `param` is the parameter of a single variable. */
  path: string;
  param: 'environmentVariableId' | 'secretId';
  /** In operation ids and tags. */
  name: string;
  tag: string;
  record: TSchema;
  list: TSchema;
  toView(found: Found): unknown;
}

const VARIABLES: Sort = {
  wanted: 'variable',
  path: 'environmentVariable',
  param: 'environmentVariableId',
  name: 'EnvironmentVariable',
  tag: 'Environment Variable',
  record: schema.EnvironmentVariable,
  list: schema.EnvironmentVariableList,
  toView: toVariableView,
};

const SECRETS: Sort = {
  wanted: 'secret',
  path: 'secret',
  param: 'secretId',
  name: 'Secret',
  tag: 'Secret',
  record: schema.Secret,
  list: schema.SecretList,
  toView: toSecretView,
};

/** Variables of a holder: `/<holder>/{id}/environmentVariable…`; services have import as well. */
export const variableRoutes = (holder: Holder): Route[] => [
  ...routesOf(holder, VARIABLES),
  ...(holder.scope === 'PROJECT' || holder.scope === 'ENVIRONMENT' ? [] : [importRoute(holder)]),
];

/** Secrets of a holder: `/<holder>/{id}/secret…`. */
export const secretRoutes = (holder: Holder): Route[] => routesOf(holder, SECRETS);

function routesOf(holder: Holder, sort: Sort): Route[] {
  const { wanted, toView } = sort;
  const all = `/${holder.path}/{${holder.param}}/${sort.path}`;
  const one = `${all}/{${sort.param}}`;
  const shared = { tag: tagOf(holder, sort), target: holder.target };
  const what = wanted === 'secret' ? 'secret' : 'variable';
  const place = (call: Call<HolderTarget>) => placeOf(call.target, holder.scope);
  const idOf = (call: Call<HolderTarget>) => call.params[sort.param]!;
  return [
    defineRoute({
      ...shared,
      id: `list${holder.name}${sort.name}`,
      method: 'GET',
      path: all,
      summary: `List the ${what}s that are seen from here`,
      description: 'Inherited and built-in ones too, the overridden ones included.',
      action: 'variable.read',
      query: PageQuery,
      answer: { status: 200, body: sort.list },
      handler: async (call) => {
        const { entries, byId } = await loadLine(call, place(call));
        const own = entries.filter((entry) => (entry.isSecret ?? false) === (wanted === 'secret'));
        const page = slicePage(own, call.query);
        return { ...page, results: page.results.map((entry) => toView({ entry, byId })) };
      },
    }),
    defineRoute({
      ...shared,
      id: `create${holder.name}${sort.name}`,
      method: 'POST',
      path: all,
      summary: `Create ${/^[aeiou]/.test(what) ? 'an' : 'a'} ${what}`,
      description: `Stores the ${what} here; whatever stands below sees it from its next deployment on. 409 if the key is taken here.`,
      action: 'variable.edit',
      body: schema.VariableRequest,
      answer: { status: 201, body: sort.record },
      errors: [409],
      handler: async (call) => toView(await service.createVariable(call, place(call), wanted === 'secret', call.body)),
    }),
    defineRoute({
      ...shared,
      id: `get${holder.name}${sort.name}`,
      method: 'GET',
      path: one,
      summary: `Get a ${what} that is seen from here`,
      description: `Answers a ${what} of this scope, of a higher one, or a built-in one.`,
      action: 'variable.read',
      answer: { status: 200, body: sort.record },
      handler: async (call) => toView(await service.findVisible(call, place(call), idOf(call), wanted)),
    }),
    defineRoute({
      ...shared,
      id: `edit${holder.name}${sort.name}`,
      method: 'PUT',
      path: one,
      summary: `Edit a ${what}`,
      description: 'What is left out stays. Overrides of it keep its key.',
      action: 'variable.edit',
      body: schema.VariableEditRequest,
      answer: { status: 200, body: sort.record },
      errors: [400, 409],
      handler: async (call) => toView(await service.editVariable(call, place(call), idOf(call), wanted, call.body)),
    }),
    defineRoute({
      ...shared,
      id: `delete${holder.name}${sort.name}`,
      method: 'DELETE',
      path: one,
      summary: `Delete a ${what} with what overrides it and its aliases`,
      description: `Overrides and aliases of the ${what} disappear with it. A built-in one cannot be deleted.`,
      action: 'variable.edit',
      answer: { status: 204, body: null },
      errors: [400],
      handler: (call) => service.removeVariable(call, place(call), idOf(call), wanted),
    }),
    defineRoute({
      ...shared,
      id: `create${holder.name}${sort.name}Override`,
      method: 'POST',
      path: `${one}/override`,
      summary: `Give a ${what} of a higher scope another value here`,
      description: `The override keeps the key of the ${what} and gives it another value here and below. 409 if it is overridden here already.`,
      action: 'variable.edit',
      body: schema.OverrideRequest,
      answer: { status: 201, body: sort.record },
      errors: [400, 409],
      handler: async (call) => toView(await service.overrideVariable(call, place(call), idOf(call), wanted, call.body)),
    }),
    defineRoute({
      ...shared,
      id: `create${holder.name}${sort.name}Alias`,
      method: 'POST',
      path: `${one}/alias`,
      summary: `Give a ${what} that is seen from here a second key`,
      description: `The alias always has the value that the ${what} has. An alias of an alias is refused.`,
      action: 'variable.edit',
      body: schema.AliasRequest,
      answer: { status: 201, body: sort.record },
      errors: [400, 409],
      handler: async (call) => toView(await service.aliasVariable(call, place(call), idOf(call), wanted, call.body)),
    }),
  ];
}

/** The reference's tags: `Application Environment Variable`, but `Environment Variable` where the holder is an environment. */
const tagOf = (holder: Holder, sort: Sort): string =>
  holder.scope === 'ENVIRONMENT' && sort.wanted === 'variable' ? sort.tag : `${holder.tag} ${sort.tag}`;

const importRoute = (holder: Holder): Route =>
  defineRoute({
    id: `import${holder.name}EnvironmentVariable`,
    method: 'POST',
    path: `/${holder.path}/{${holder.param}}/environmentVariable/import`,
    tag: tagOf(holder, VARIABLES),
    summary: 'Import variables and secrets',
    description: 'Each succeeds or fails for itself. A key that is taken needs overwrite.',
    target: holder.target,
    action: 'variable.edit',
    body: schema.ImportRequest,
    answer: { status: 201, body: schema.ImportResult },
    handler: (call) => importInto(call, placeOf(call.target, holder.scope), call.body),
  });
