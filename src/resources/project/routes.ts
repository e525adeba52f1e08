import { visibleProjects } from '#platform/access/visibility.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import type { Context } from '#platform/context.ts';
import { organizationTarget } from '#resources/organization/target.ts';
import { listProjects } from '#resources/project/queries.ts';
import { Project, ProjectList, ProjectRequest, ProjectStatsList } from '#resources/project/schema.ts';
import { createProject, editProject, projectStats, toVisibleProjectView } from '#resources/project/service.ts';
import { projectTarget, type ProjectTarget } from '#resources/project/target.ts';

export interface ProjectRoutesNeeds {
  /** Tears down what is in the project, then removes it (docs/contributing/rules.md 19). */
  deleteProject(context: Context, project: ProjectTarget, require: Call['require']): Promise<void>;
}

export const projectRoutes = (needs: ProjectRoutesNeeds): Route[] => [
  defineRoute({
    id: 'listProject',
    method: 'GET',
    path: '/organization/{organizationId}/project',
    tag: 'Projects',
    summary: 'List the projects of an organization',
    description: 'Answers the projects that you may read; a custom role shows those that it names.',
    target: organizationTarget,
    action: 'project.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: ProjectList },
    handler: ({ db, principal, target, query }) => {
      const visible = visibleProjects(principal, target.organizationId);
      return fetchPage(db, listProjects(db, target).where(visible), query, (row) =>
        toVisibleProjectView(principal, row),
      );
    },
  }),
  defineRoute({
    id: 'createProject',
    method: 'POST',
    path: '/organization/{organizationId}/project',
    tag: 'Projects',
    summary: 'Create a project',
    description: 'Makes an empty project. 409 if the organization has one of that name, compared without case.',
    target: organizationTarget,
    action: 'project.create',
    body: ProjectRequest,
    answer: { status: 201, body: Project },
    errors: [409],
    handler: (call) => createProject(call, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getOrganizationProjectStats',
    method: 'GET',
    path: '/organization/{organizationId}/project/stats',
    tag: 'Projects',
    summary: 'Count the environments and services of each project',
    description: 'Answers two numbers for each project that you may read.',
    target: organizationTarget,
    action: 'project.read',
    filtersRows: true,
    answer: { status: 200, body: ProjectStatsList },
    handler: (call) => projectStats(call, call.principal, call.target.organizationId),
  }),
  defineRoute({
    id: 'getProject',
    method: 'GET',
    path: '/project/{projectId}',
    tag: 'Project Main Calls',
    summary: 'Get a project',
    description: 'Answers name, description and the number of environments.',
    target: projectTarget,
    action: 'project.read',
    filtersRows: true,
    answer: { status: 200, body: Project },
    readsOnlyTarget: true,
    handler: ({ principal, target }) => toVisibleProjectView(principal, target),
  }),
  defineRoute({
    id: 'editProject',
    method: 'PUT',
    path: '/project/{projectId}',
    tag: 'Project Main Calls',
    summary: 'Edit a project',
    description:
      'Changes name and description; fields that are left out keep their values. 409 if another project has the name.',
    target: projectTarget,
    action: 'project.edit',
    filtersRows: true,
    body: ProjectRequest,
    answer: { status: 200, body: Project },
    errors: [409],
    handler: (call) => editProject(call, call.principal, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteProject',
    method: 'DELETE',
    path: '/project/{projectId}',
    tag: 'Project Main Calls',
    summary: 'Delete a project with all that is in it',
    description: 'Answers at once; what runs is torn down, then the project is gone.',
    target: projectTarget,
    action: 'project.delete',
    answer: { status: 204, body: null },
    handler: (call) => needs.deleteProject(call, call.target, call.require),
  }),
];
