import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
useEngine(app, {}, undefined, { pretendsSources: true });

const NOWHERE = { git_repository: { url: 'https://git.invalid/acme/shop.git', branch: 'main' } };

test('what the fake runtime deploys asks neither repositories nor registries, and folders of this machine are read', async () => {
  const admin = await app.organization();
  const { application: local, environment } = await makeExample(admin);
  const registry = ok(
    await admin.post(`/organization/${admin.organizationId}/containerRegistry`, {
      name: newId(),
      kind: 'ECR',
      url: 'https://1.dkr.ecr.eu-west-3.amazonaws.com',
      config: { region: 'eu-west-3', access_key_id: 'AKIDEXAMPLE', secret_access_key: 'secret' },
    }),
    201,
  );
  const make = async (kind: string, body: object) =>
    ok(await admin.post(`/environment/${environment.id}/${kind}`, { name: newId(), ...body }), 201);
  const remote = await make('application', { ...NOWHERE, dockerfile_path: 'deep/Dockerfile' });
  const image = { registry_id: registry.id, image_name: 'acme/shop', tag: '1' };
  await make('container', image);
  await make('job', { source: { docker: NOWHERE }, schedule: { on_start: {} } });
  await make('job', { source: { image }, schedule: { on_start: {} } });
  await make('database', { type: 'REDIS', version: '6.2', mode: 'CONTAINER' });
  await make('helm', { source: NOWHERE });
  await make('terraform', {
    terraform_files_source: { git: NOWHERE },
    terraform_variables_source: { tf_var_file_paths: [], tf_vars: [{ key: 'tags', value: '["a"]', secret: false }] },
    backend: { kubernetes: {} },
    engine: 'TERRAFORM',
    provider_version: { read_from_terraform_block: false, explicit_version: '1.13.0' },
    job_resources: { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 1 },
  });
  const status = ok(await admin.post(`/environment/${environment.id}/deploy?wait=30`), 200);
  const log = ok(await admin.get(`/environment/${environment.id}/logs`), 200);
  expect(status.state, JSON.stringify(log.filter((line: any) => line.error))).toBe('DEPLOYED');
  const commitOf = async (id: string) => ok(await admin.get(`/application/${id}`), 200).git_repository;
  const first = await commitOf(remote.id);
  expect(first).toMatchObject({ deployed_commit_id: expect.stringMatching(/^[0-9a-f]{40}$/) });
  expect((await commitOf(local.id)).deployed_commit_contributor).not.toBe('fake');
  ok(await admin.post(`/application/${remote.id}/deploy?wait=40`), 200);
  expect(await commitOf(remote.id)).toEqual(first);
});

test('a folder of this machine that does not belong to those of the setting is refused when the service is made', async () => {
  const admin = await app.organization();
  const { environment, application } = await makeExample(admin);
  const body = exampleBody({ name: newId(), git_repository: { url: '/etc', branch: 'main' } });
  const { errors } = ok(await admin.post(`/environment/${environment.id}/application`, body), 400);
  expect(errors).toEqual([
    { field: 'git_repository.url', message: expect.stringContaining('QUARTERDECK_LOCAL_GIT_ROOTS') },
  ]);
  const edit = { git_repository: { url: '/etc' } };
  ok(await admin.put(`/application/${application.id}`, edit), 400);
  ok(await (await admin.withScope('READ')).put(`/application/${application.id}`, edit), 403);
  ok(await (await app.organization()).put(`/application/${application.id}`, edit), 404);
});
