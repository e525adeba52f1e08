import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok } from '#test/harness/app.ts';
import { tfVars, useTerraformServices } from '#test/harness/terraform-services.ts';

const { app, makeServiceOf } = useTerraformServices();

describe('a configuration', () => {
  test('is answered as it was given, with the defaults of what was left out', async () => {
    const { admin, url, repository, environmentId } = await makeServiceOf();
    const answer = ok(await admin.get(url), 200);
    expect(answer).toMatchObject({
      name: 'infra',
      environment: { id: environmentId },
      service_type: 'TERRAFORM',
      timeout_sec: 600,
      auto_deploy: false,
      auto_deploy_config: { auto_deploy: false, terraform_action: 'DEFAULT' },
      terraform_files_source: { git: { git_repository: { url: repository.url, branch: 'main', root_path: '/' } } },
      backend: { kubernetes: {} },
      use_cluster_credentials: false,
      action_extra_arguments: {},
      dockerfile_fragment: null,
      blueprint_id: null,
    });
    expect(Object.keys(answer.backend)).toEqual(['kubernetes']);
  });

  test('needs a name, a backend and a repository only, named in either way', async () => {
    const { admin, environmentId, repository } = await makeServiceOf();
    const terraform_files_source = { git_repository: { url: repository.url } };
    const least = { name: 'least', terraform_files_source, backend: { kubernetes: {} } };
    const answer = ok(await admin.post(`/environment/${environmentId}/terraform`, least), 201);
    expect(answer.terraform_files_source.git.git_repository.url).toBe(repository.url);
    expect(answer.backend).toEqual({ kubernetes: {} });
    ok(await admin.post(`/environment/${environmentId}/terraform`, { ...least, name: 'LEAST' }), 409);
  });

  test('keeps secret values sealed: neither answered nor in the database, and kept when sent back without them', async () => {
    const given = tfVars(
      { key: 'password', value: 'hunter22', secret: true },
      { key: 'name', value: 'n', secret: false },
    );
    const { admin, url, id } = await makeServiceOf(given);
    const answer = ok(await admin.get(url), 200);
    expect(answer.terraform_variables_source.tf_vars).toEqual([
      { key: 'password', secret: true },
      { key: 'name', value: 'n', secret: false },
    ]);
    const specOf = async () =>
      (await app.db.selectFrom('service').select('spec').where('id', '=', id).executeTakeFirstOrThrow()).spec;
    const before = await specOf();
    expect(JSON.stringify(before)).not.toContain('hunter22');
    const { terraform_variables_source } = answer;
    ok(await admin.put(url, { terraform_variables_source }), 200);
    expect(await specOf()).toEqual(before);
    const changed = tfVars({ key: 'password', secret: false });
    expect(ok(await admin.put(url, changed), 400).errors[0].field).toBe('terraform_variables_source.tf_vars[0].value');
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['two backends', { backend: { kubernetes: {}, user_provided: {} } }, 'backend'],
    ['no backend', { backend: {} }, 'backend.kubernetes'],
    ['auto deploys that contradict', { auto_deploy: true }, 'auto_deploy'],
    ['a command of another name', { action_extra_arguments: { import: [] } }, 'action_extra_arguments.import'],
    ['a state of its own', { action_extra_arguments: { apply: ['-state=x'] } }, 'action_extra_arguments.apply[0]'],
    ['no version', { provider_version: { explicit_version: 'newest' } }, 'provider_version.explicit_version'],
    ['a file outside', tfVarFiles('../x.tfvars'), 'terraform_variables_source.tf_var_file_paths[0]'],
    [
      'a variable twice',
      tfVars({ key: 'a', value: '1' }, { key: 'a', value: '2' }),
      'terraform_variables_source.tf_vars[1].key',
    ],
    ['a variable without a name', tfVars({ value: '1' }), 'terraform_variables_source.tf_vars[0].key'],
    [
      'another image',
      { dockerfile_fragment: { type: 'inline', content: 'FROM scratch' } },
      'dockerfile_fragment.content',
    ],
    ['a fragment outside', { dockerfile_fragment: { type: 'file', path: '../x' } }, 'dockerfile_fragment.path'],
    [
      "nobody's git token",
      { terraform_files_source: { git: { git_repository: { url: 'https://x.org/a/b', git_token_id: newId() } } } },
      'terraform_files_source.git.git_repository.git_token_id',
    ],
    ['no time', { timeout_sec: -1 }, 'timeout_sec'],
  ])('is refused with the field: %s', async (_name, more, field) => {
    const { admin, url } = await makeServiceOf();
    const wrong = { auto_deploy_config: { auto_deploy: false, terraform_action: 'DEFAULT' }, ...more };
    const answer = ok(await admin.put(url, wrong), 400);
    expect(answer.errors.map((error: { field: string }) => error.field)).toContain(field);
  });

  test('is made from a blueprint once', async () => {
    const blueprint = newId();
    const { admin, url } = await makeServiceOf({ blueprint_id: blueprint });
    expect(ok(await admin.put(url, { blueprint_id: blueprint }), 200).blueprint_id).toBe(blueprint);
    expect(ok(await admin.put(url, { blueprint_id: newId() }), 400).errors[0].field).toBe('blueprint_id');
  });

  test('can be read and changed by who may, and is not there for others', async () => {
    const { admin, url } = await makeServiceOf();
    const reader = await admin.withScope('READ');
    ok(await reader.get(url), 200);
    ok(await reader.put(url, { timeout_sec: 5 }), 403);
    ok(await reader.post(`${url}/deploy`, {}), 403);
    const stranger = await app.organization();
    for (const answer of [await stranger.get(url), await stranger.put(url, {}), await stranger.get(`${url}/plan`)])
      ok(answer, 404);
    ok(await admin.withScope('WRITE').then((writer) => writer.delete(url)), 204);
    ok(await admin.get(url), 404);
  });
});

function tfVarFiles(...tf_var_file_paths: string[]) {
  return { terraform_variables_source: { tf_var_file_paths, tf_vars: [] } };
}

test('versions that can be named are listed, newest first, without an id in the path', async () => {
  const admin = await app.organization();
  const { results } = ok(await admin.get('/terraform/availableVersion'), 200);
  expect(results[0].engine).toBe('TERRAFORM');
  expect(results.filter((one: { engine: string }) => one.engine === 'OPEN_TOFU').length).toBeGreaterThan(1);
});
