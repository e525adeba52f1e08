import { afterAll } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor, type TestApp } from '#test/harness/app.ts';
import { useEngine, type TestEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot, type TestRepository } from '#test/harness/repository.ts';

export const MODULE = `
variable "name" { default = "nobody" }
variable "password" {
  default   = "none"
  sensitive = true
}
variable "tags" {
  type    = list(string)
  default = []
}
variable "policy" { default = "" }
resource "terraform_data" "greeting" { input = "hello \${var.name}" }
resource "terraform_data" "secret" { input = var.password }
output "greeting-text" { value = terraform_data.greeting.output }
output "tags" { value = var.tags }
output "password" {
  value     = var.password
  sensitive = true
}
`;

export interface TerraformService {
  admin: Actor;
  id: string;
  environmentId: string;
  repository: TestRepository;
  url: string;
  act(action: string, body?: unknown): Promise<any>;
  log(): Promise<string>;
}

const body = (repository: TestRepository, more: Record<string, unknown> = {}) => ({
  name: 'infra',
  description: 'what the team runs on',
  auto_deploy_config: { auto_deploy: false, terraform_action: 'DEFAULT' },
  terraform_files_source: { git: { git_repository: { url: repository.url, branch: 'main' } } },
  terraform_variables_source: { tf_var_file_paths: [], tf_vars: [] },
  backend: { kubernetes: {} },
  engine: 'TERRAFORM',
  provider_version: { explicit_version: '1.11.4' },
  job_resources: { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 1 },
  ...more,
});

async function makeEnvironment(admin: Actor): Promise<string> {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  return ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201).id;
}

export const tfVars = (...tf_vars: object[]) => ({ terraform_variables_source: { tf_var_file_paths: [], tf_vars } });

/** Provides the application and engine of a test file, and a function that creates Terraform services in them. */
export function useTerraformServices(): {
  app: TestApp;
  engine: TestEngine;
  makeServiceOf(more?: Record<string, unknown>, module?: string): Promise<TerraformService>;
} {
  const repositories = makeRepositoryRoot();
  const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
  const engine = useEngine(app);
  afterAll(() => repositories.remove());
  async function makeServiceOf(more: Record<string, unknown> = {}, module = MODULE): Promise<TerraformService> {
    const admin = await app.organization();
    const environmentId = await makeEnvironment(admin);
    const repository = repositories.make();
    repository.commit({ 'main.tf': module, 'prod.tfvars': 'name = "file"\n' });
    const { id } = ok(await admin.post(`/environment/${environmentId}/terraform`, body(repository, more)), 201);
    const url = `/terraform/${id}`;
    return {
      admin,
      id,
      environmentId,
      repository,
      url,
      act: async (action, said = {}) => ok(await admin.post(`${url}/${action}?wait=60`, said), 200),
      log: async () => JSON.stringify(ok(await admin.get(`/environment/${environmentId}/logs`), 200)),
    };
  }
  return { app, engine, makeServiceOf };
}
