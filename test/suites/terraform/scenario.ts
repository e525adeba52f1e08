import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';
import type { Engine } from '#services/kinds/terraform/schema.ts';
import type { RepositoryRoot } from '#test/harness/repository.ts';

export interface TerraformStage {
  app: TestApp;
  repositories: RepositoryRoot;
  runtime: 'host' | 'docker';
  engine: Engine;
  version: string;
  /** Log lines of the runtime. */
  lines: string[];
}

const MODULE = `
variable "password" { sensitive = true }
resource "terraform_data" "who" {
  input = var.password
  provisioner "local-exec" { command = "id -u; ls / | tr '\\n' ' '; cat run.note; echo $ADDED" }
}
resource "terraform_data" "count" {
  count = 2
  input = count.index
}
output "who" { value = length(terraform_data.count) }
`;

/** Creates a Terraform service on a cluster of the runtime. */
export async function makeService({ app, repositories, runtime, engine, version }: TerraformStage, admin: Actor) {
  await app.db.updateTable('cluster').set({ runtime }).where('organization_id', '=', admin.organizationId).execute();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
  const repository = repositories.make();
  repository.commit({ 'infra/main.tf': MODULE, 'infra/run.note': 'a note\n' });
  const service = ok(
    await admin.post(`/environment/${environment.id}/terraform`, {
      name: 'infra',
      engine,
      backend: { kubernetes: {} },
      terraform_files_source: {
        git: { git_repository: { url: repository.url, branch: 'main', root_path: '/infra' } },
      },
      terraform_variables_source: {
        tf_var_file_paths: [],
        tf_vars: [{ key: 'password', value: 'hunter22', secret: true }],
      },
      provider_version: { explicit_version: version, read_from_terraform_block: true },
      dockerfile_fragment: { type: 'inline', content: 'ENV ADDED=by-the-fragment' },
    }),
    201,
  );
  return { environmentId: environment.id as string, url: `/terraform/${service.id}` };
}

/** Tests the life of a service with the real program. */
export function testLife(stage: TerraformStage): void {
  test('is planned, applied, changed and destroyed by the real program, its state kept by the service', async () => {
    const { app, lines } = stage;
    const admin = await app.organization();
    const { environmentId, url } = await makeService(stage, admin);
    const log = async () => JSON.stringify(ok(await admin.get(`/environment/${environmentId}/logs`), 200));
    const act = async (action: string, body: object = {}) =>
      ok(await admin.post(`${url}/${action}?wait=120`, body), 200).state as string;

    expect(await act('deploy', { action: 'PLAN' }), await log()).toBe('READY');
    expect(ok(await admin.get(`${url}/plan`), 200).plan.summary.create).toBe(3);
    expect(await act('deploy'), await log()).toBe('DEPLOYED');
    expect(await log()).toContain('a note');
    expect(await log()).toContain('by-the-fragment');
    const { results } = ok(await admin.get(`${url}/terraformResources`), 200);
    expect(results.map((one: { address: string }) => one.address)).toEqual([
      'terraform_data.count[0]',
      'terraform_data.count[1]',
      'terraform_data.who',
    ]);
    const versions = await app.db.selectFrom('terraform_state_version').select('version').execute();
    expect(versions.length).toBeGreaterThan(0);
    expect(JSON.stringify(results) + (await log()) + lines.join('\n')).not.toContain('hunter22');
    expect(await act('uninstall'), await log()).toBe('DELETED');
    expect(ok(await admin.get(`${url}/terraformResources`), 200).results).toEqual([]);
  });
}
