import { requireSomewhere } from '#platform/access/granting.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { organizationTarget, type OrganizationTarget } from '#resources/organization/index.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';
import * as schema from '#services/terraform-repository/schema.ts';
import { listVariableFiles, parseVariables, type Reading } from '#services/terraform-repository/service.ts';

/** Endpoints that read Terraform files in a repository, so that a service can be created from them. */
export function terraformRepositoryRoutes(repositories: RepositoryReader): Route[] {
  const readingOf = (call: Call<OrganizationTarget>): Reading => {
    // Reading uses the organization's git tokens: it takes the permission to create a service somewhere in the organization.
    requireSomewhere(call.principal, call.target.id, 'WRITE');
    return { context: call, organizationId: call.target.id, repositories, signal: call.signal };
  };
  return [
    defineRoute({
      id: 'parseTerraformVariablesFromGitRepo',
      method: 'POST',
      path: '/organization/{organizationId}/parseTerraformVariablesFromGitRepo',
      tag: 'Organization Main Calls',
      summary: 'List the variables that a Terraform module in a git repository declares',
      description:
        'Reads the module at the named branch and folder and answers name, default and description of each variable. Nothing is stored.',
      target: organizationTarget,
      action: 'organization.read',
      transaction: false,
      body: schema.TerraformVariableParsingRequest,
      answer: { status: 200, body: schema.TerraformVariableDefinitionList },
      errors: [502],
      handler: (call) => parseVariables(readingOf(call), call.body.git_repository),
    }),
    defineRoute({
      id: 'listTfVarsFilesFromGitRepo',
      method: 'POST',
      path: '/organization/{organizationId}/listTfVarsFilesFromGitRepo',
      tag: 'Organization Main Calls',
      summary: 'List the files of Terraform variables in a git repository, with what they set',
      description:
        'Finds the files by themselves or at the named paths, and answers the keys and values of each. Nothing is stored.',
      target: organizationTarget,
      action: 'organization.read',
      transaction: false,
      body: schema.TfVarsListRequest,
      answer: { status: 200, body: schema.TfVarsFileList },
      errors: [502],
      handler: (call) => listVariableFiles(readingOf(call), call.body),
    }),
  ];
}
