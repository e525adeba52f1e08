import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listProjectRules } from '#resources/deployment-rule/queries.ts';
import * as schema from '#resources/deployment-rule/schema.ts';
import * as service from '#resources/deployment-rule/service.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/target.ts';
import { projectTarget } from '#resources/project/target.ts';

const PROJECT = 'Project Deployment Rule';
const ENVIRONMENT = 'Environment Deployment Rule';
const ALL = '/project/{projectId}/deploymentRule' as const;
const ONE = `${ALL}/{deploymentRuleId}` as const;

export const deploymentRuleRoutes: Route[] = [
  defineRoute({
    id: 'listProjectDeploymentRules',
    method: 'GET',
    path: ALL,
    tag: PROJECT,
    summary: 'List the deployment rules of a project in their order',
    description: 'The first rule of this order whose wildcard matches the name of a new environment is applied to it.',
    target: projectTarget,
    action: 'project.read',
    query: PageQuery,
    answer: { status: 200, body: schema.ProjectDeploymentRuleList },
    handler: ({ db, target, query }) =>
      fetchPage(db, listProjectRules(db, target, target.id), query, service.toProjectRuleView),
  }),
  defineRoute({
    id: 'createDeploymentRule',
    method: 'POST',
    path: ALL,
    tag: PROJECT,
    summary: 'Create a deployment rule',
    description: 'The first rule whose wildcard matches the name of a new environment is applied to it.',
    target: projectTarget,
    action: 'project.edit',
    body: schema.ProjectDeploymentRuleRequest,
    answer: { status: 201, body: schema.ProjectDeploymentRule },
    errors: [409],
    handler: (call) => service.createProjectRule(call, call.target, call.body),
  }),
  defineRoute({
    id: 'updateDeploymentRulesPriorityOrder',
    method: 'PUT',
    path: `${ALL}/order`,
    tag: PROJECT,
    summary: 'Order the deployment rules of a project',
    description: 'Rules that the body does not name come after the others, in their present order.',
    target: projectTarget,
    action: 'project.edit',
    body: schema.ProjectDeploymentRulesOrder,
    answer: { status: 200, body: schema.ProjectDeploymentRuleList },
    errors: [409],
    handler: async (call) => {
      await service.orderProjectRules(call, call.target, call.body.project_deployment_rule_ids_in_order ?? []);
      return fetchPage(call.db, listProjectRules(call.db, call.target, call.target.id), {}, service.toProjectRuleView);
    },
  }),
  defineRoute({
    id: 'getProjectDeploymentRule',
    method: 'GET',
    path: ONE,
    tag: PROJECT,
    summary: 'Get a deployment rule of a project',
    description: 'Answers the hours and days at which environments of the rule run, in its time zone.',
    target: projectTarget,
    action: 'project.read',
    answer: { status: 200, body: schema.ProjectDeploymentRule },
    handler: async (call) =>
      service.toProjectRuleView(await service.findProjectRule(call, call.target, call.params.deploymentRuleId)),
  }),
  defineRoute({
    // The reference spells it so.
    id: 'editProjectDeployemtnRule',
    method: 'PUT',
    path: ONE,
    tag: PROJECT,
    summary: 'Edit a deployment rule of a project',
    description: 'Environments that were made before keep theirs.',
    target: projectTarget,
    action: 'project.edit',
    body: schema.ProjectDeploymentRuleRequest,
    answer: { status: 200, body: schema.ProjectDeploymentRule },
    errors: [409],
    handler: (call) => service.editProjectRule(call, call.target, call.params.deploymentRuleId, call.body),
  }),
  defineRoute({
    id: 'deleteProjectDeploymentRule',
    method: 'DELETE',
    path: ONE,
    tag: PROJECT,
    summary: 'Delete a deployment rule of a project',
    description: 'Environments that got the rule keep what they have.',
    target: projectTarget,
    action: 'project.edit',
    answer: { status: 204, body: null },
    handler: (call) => service.deleteProjectRule(call, call.target, call.params.deploymentRuleId),
  }),
  defineRoute({
    id: 'getEnvironmentDeploymentRule',
    method: 'GET',
    path: '/environment/{environmentId}/deploymentRule',
    tag: ENVIRONMENT,
    summary: 'Get the deployment rule of an environment',
    description:
      'Answers at which hours and days the environment runs. A new environment gets the rule of its project that matches its name, or one that stops nothing.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: schema.EnvironmentDeploymentRule },
    handler: async (call) => service.toEnvironmentRuleView(await service.environmentRule(call, call.target)),
  }),
  defineRoute({
    id: 'editEnvironmentDeploymentRule',
    method: 'PUT',
    path: '/environment/{environmentId}/deploymentRule/{deploymentRuleId}',
    tag: ENVIRONMENT,
    summary: 'Edit the deployment rule of an environment',
    description: 'What runs now, or does not, stays so until the hours begin or end the next time.',
    target: environmentTarget,
    action: 'environment.edit',
    body: schema.EnvironmentDeploymentRuleRequest,
    answer: { status: 200, body: schema.EnvironmentDeploymentRule },
    errors: [409],
    current: async (call: Call<EnvironmentTarget>) =>
      service.toEnvironmentRuleView(await service.environmentRule(call, call.target)),
    handler: (call) => service.editEnvironmentRule(call, call.target, call.params.deploymentRuleId, call.body),
  }),
];
