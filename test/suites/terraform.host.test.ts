import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { HAS_TERRAFORM } from '#services/kinds/terraform/testing.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { useHostEngine } from '#test/suites/security/host-engine.ts';

const repositories = makeRepositoryRoot();
afterAll(() => repositories.remove());
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder, QUARTERDECK_TERRAFORM_STATE_PORT: '0' });
const lines: string[] = [];
useHostEngine(app, (line) => lines.push(line), 'auto');

const MODULE = `
variable "password" { sensitive = true }
resource "terraform_data" "who" {
  input = var.password
  provisioner "local-exec" { command = "id -u; ls / | tr '\\n' ' '; cat run.note" }
}
resource "terraform_data" "count" {
  count = 2
  input = count.index
}
output "who" { value = length(terraform_data.count) }
`;

async function makeService(admin: Actor) {
  await app.db
    .updateTable('cluster')
    .set({ runtime: 'host' })
    .where('organization_id', '=', admin.organizationId)
    .execute();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
  const repository = repositories.make();
  repository.commit({ 'infra/main.tf': MODULE, 'infra/run.note': 'a note\n' });
  const service = ok(
    await admin.post(`/environment/${environment.id}/terraform`, {
      name: 'infra',
      terraform_files_source: {
        git: { git_repository: { url: repository.url, branch: 'main', root_path: '/infra' } },
      },
      terraform_variables_source: {
        tf_var_file_paths: [],
        tf_vars: [{ key: 'password', value: 'hunter22', secret: true }],
      },
      provider_version: { explicit_version: '', read_from_terraform_block: true },
      dockerfile_fragment: { type: 'inline', content: 'RUN echo added > /usr/local/share/added' },
    }),
    201,
  );
  return { environmentId: environment.id as string, url: `/terraform/${service.id}` };
}

describe.skipIf(!HAS_TERRAFORM)('a Terraform service on a host cluster', () => {
  test('is planned, applied, changed and destroyed by the real program, its state kept by the service', async () => {
    const admin = await app.organization();
    const { environmentId, url } = await makeService(admin);
    const log = async () => JSON.stringify(ok(await admin.get(`/environment/${environmentId}/logs`), 200));
    const act = async (action: string, body: object = {}) =>
      ok(await admin.post(`${url}/${action}?wait=120`, body), 200).state as string;

    expect(await act('deploy', { action: 'PLAN' }), await log()).toBe('READY');
    expect(ok(await admin.get(`${url}/plan`), 200).plan.summary.create).toBe(3);
    expect(await act('deploy'), await log()).toBe('DEPLOYED');
    expect(await log()).toContain('a note');
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

  test('names the version that is missing, and how it is got', async () => {
    const admin = await app.organization();
    const { environmentId, url } = await makeService(admin);
    ok(await admin.put(url, { provider_version: { explicit_version: '0.99.0' } }), 200);
    expect(ok(await admin.post(`${url}/deploy?wait=120`, {}), 200).state).toMatch(/ERROR$/);
    const log = JSON.stringify(ok(await admin.get(`/environment/${environmentId}/logs`), 200));
    expect(log).toContain('Terraform 0.99.0 is not on this machine');
    expect(log).toContain('QUARTERDECK_TERRAFORM_PROGRAMS');
  });
});
