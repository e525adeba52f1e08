import { visibleEnvironments } from '#platform/access/visibility.ts';
import type { Context } from '#platform/context.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { projectTarget } from '#resources/project/index.ts';
import { listEnvironmentsByProject } from '#resources/environment/queries.ts';
import {
  Environment,
  EnvironmentEditRequest,
  EnvironmentList,
  EnvironmentRequest,
  EnvironmentStatsList,
} from '#resources/environment/schema.ts';
import {
  createEnvironment,
  editEnvironment,
  environmentStats,
  toEnvironmentView,
  withRule,
} from '#resources/environment/service.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/target.ts';

/** Parts of the program above this resource that its routes need. */
export interface EnvironmentNeeds {
  /** Throws where the environment may not get another mode. */
  checkModeChange(context: Context, environment: EnvironmentTarget, mode: string): Promise<void>;
}

export const environmentRoutes = ({ checkModeChange }: EnvironmentNeeds): Route[] => [
  defineRoute({
    id: 'listEnvironment',
    method: 'GET',
    path: '/project/{projectId}/environment',
    tag: 'Environments',
    summary: 'List the environments of a project',
    description: 'Answers the environments of the project that you may read, in creation order.',
    target: projectTarget,
    action: 'project.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: EnvironmentList },
    handler: ({ db, principal, target, query }) => {
      const visible = visibleEnvironments(principal, target.organizationId);
      return fetchPage(db, listEnvironmentsByProject(db, target, target.id).where(visible), query, toEnvironmentView);
    },
  }),
  defineRoute({
    id: 'createEnvironment',
    method: 'POST',
    path: '/project/{projectId}/environment',
    tag: 'Environments',
    summary: 'Create an environment',
    description:
      'Makes an empty environment with its default stages. Without a cluster it is put on the default or only cluster of the organization.',
    target: projectTarget,
    action: 'project.read',
    body: EnvironmentRequest,
    answer: { status: 201, body: Environment },
    errors: [409],
    handler: async (call) => {
      const { organizationId } = call.target;
      const input = await withRule(call, call.target, call.body);
      call.require('environment.create', { ...call.target, mode: input.mode });
      const environment = await createEnvironment(call, call.target, input);
      call.require('cluster.use', { organizationId, clusterId: environment.cluster_id });
      return environment;
    },
  }),
  defineRoute({
    id: 'getProjectEnvironmentServiceNumber',
    method: 'GET',
    path: '/project/{projectId}/environment/stats',
    tag: 'Environments',
    summary: 'Count the services of each environment of a project',
    description: 'Answers the number twice, as `service_total_number` and as `number`; the list has no pages.',
    target: projectTarget,
    action: 'project.read',
    filtersRows: true,
    answer: { status: 200, body: EnvironmentStatsList },
    handler: (call) => environmentStats(call, call.principal, call.target),
  }),
  defineRoute({
    id: 'getEnvironment',
    method: 'GET',
    path: '/environment/{environmentId}',
    tag: 'Environment Main Calls',
    summary: 'Get an environment',
    description:
      'Answers mode, cluster and project. `expires_at` is null except for the environment of an agentic run and the preview of a pull request.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: Environment },
    readsOnlyTarget: true,
    handler: ({ target }) => toEnvironmentView(target),
  }),
  defineRoute({
    id: 'editEnvironment',
    method: 'PUT',
    path: '/environment/{environmentId}',
    tag: 'Environment Main Calls',
    summary: 'Edit an environment',
    description: 'Changes name and mode; fields that are left out keep their values. The cluster stays.',
    target: environmentTarget,
    action: 'environment.edit',
    body: EnvironmentEditRequest,
    answer: { status: 200, body: Environment },
    errors: [409],
    handler: async (call) => {
      const { mode } = call.body;
      if (mode) {
        call.require('environment.edit', { ...call.target, mode });
        await checkModeChange(call, call.target, mode);
      }
      return editEnvironment(call, call.target, call.body);
    },
  }),
];
