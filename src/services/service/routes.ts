import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { ListOf, PageQuery, Type } from '#platform/http/schema.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import { holderOf, paramOf, type CommonInput, type Kind } from '#services/kind.ts';
import { askRepositories, namesRepositoryToAsk } from '#services/sources/asked-repositories.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';
import { listServicesByEnvironment } from '#services/service/queries.ts';
import { createService, editService, toServiceView } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

const ListQuery = Type.Object({
  ...PageQuery.properties,
  toUpdate: Type.Optional(
    Type.Boolean({
      description: 'Only those whose newest recorded commit is not the deployed one; false: only the others.',
    }),
  ),
});

/** Endpoints that list, create, read and edit services of a kind. Delete is an action: it tears the workload down. */
export function serviceRoutes(kind: Kind, repositories: RepositoryReader): Route[] {
  const { target } = holderOf(kind);
  const one = `/${kind.path}/{${paramOf(kind)}}` as const;
  return [
    defineRoute({
      id: `list${kind.tag}`,
      method: 'GET',
      path: `/environment/{environmentId}/${kind.path}`,
      tag: kind.listTag,
      summary: `List the services of kind ${kind.path} of an environment`,
      description: `Answers every service of kind ${kind.path} of the environment, in creation order.`,
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
      description: `Stores a new service of kind ${kind.path}; nothing is deployed by it. 409 if the environment has a service of that name.`,
      target: environmentTarget,
      action: 'service.create',
      body: kind.schemas.create,
      answer: { status: 201, body: kind.schemas.answer },
      errors: [409],
      before: {
        wanted: namesRepositoryToAsk,
        run: (call) => askRepositories(repositories, placeOfNew(call.target), call),
      },
      handler: async (call) => {
        const view = await createService(call, kind, call.target, call.body as unknown as CommonInput);
        for (const warning of idleOptions(kind, view)) call.warn(warning);
        return view;
      },
    }),
    defineRoute({
      id: `get${kind.tag}`,
      method: 'GET',
      path: one,
      tag: `${kind.tag} Main Calls`,
      summary: `Get a service of kind ${kind.path}`,
      description:
        'Answers the configuration as it is stored, which may be newer than what is deployed. A deleted service shows until its teardown has ended.',
      target,
      action: 'service.read',
      answer: { status: 200, body: kind.schemas.answer },
      readsOnlyTarget: true,
      handler: (call) => toServiceView(call, kind, call.target),
    }),
    defineRoute({
      id: `edit${kind.tag}`,
      method: 'PUT',
      path: one,
      tag: `${kind.tag} Main Calls`,
      summary: `Edit a service of kind ${kind.path}`,
      description:
        'Changes the stored configuration; fields that are left out keep their values. What runs keeps its configuration until the next deployment.',
      target,
      action: 'service.edit',
      body: kind.schemas.edit,
      answer: { status: 200, body: kind.schemas.answer },
      errors: [409],
      before: {
        wanted: namesRepositoryToAsk,
        run: (call) => askRepositories(repositories, placeOfPresent(call.target), call),
      },
      handler: async (call) => {
        const view = await editService(call, kind, call.target, call.body as unknown as CommonInput);
        for (const warning of idleOptions(kind, view)) call.warn(warning);
        return view;
      },
    }),
  ];
}

const placeOfNew = ({ organizationId, runtime }: EnvironmentTarget) => ({ organizationId, runtime, spec: null });

const placeOfPresent = ({ organizationId, cluster_runtime: runtime, spec }: ServiceTarget) => ({
  organizationId,
  runtime,
  spec,
});

/** Lists set options that are stored and answered for existing clients, but have no effect on the service. */
function idleOptions(kind: Kind, view: Record<string, unknown>): string[] {
  return view.auto_preview === true && !kind.capabilities?.imagePreview && !isFromGit(view)
    ? ['auto_preview: previews are made for pull requests of a git repository, which this service has none of']
    : [];
}

/** Tells whether a service has a git repository, as its kind answers that: its own one, or that of the values of a chart. */
function isFromGit({ git_repository: own, source, values_override: values }: Record<string, unknown>): boolean {
  const { docker, git } = (source ?? {}) as { docker?: unknown; git?: unknown };
  const { file } = (values ?? {}) as { file?: { git?: unknown } | null };
  return Boolean(own ?? docker ?? git ?? file?.git);
}
