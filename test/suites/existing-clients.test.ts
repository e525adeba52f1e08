import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { useEngine } from '#test/harness/engine.ts';

/** Requests and expected answers of the command line client, the Terraform provider and the SDK of the reference interface. */
const repositories = makeRepositoryRoot();
afterAll(() => repositories.remove());
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
useEngine(app);

const NIL = '00000000-0000-0000-0000-000000000000';

async function makePlace(runtime = 'fake') {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id;
  if (runtime !== 'fake')
    await app.db.updateTable('cluster').set({ runtime }).where('organization_id', '=', admin.organizationId).execute();
  const environment = ok(await admin.post(`/project/${project}/environment`, { name: 'e' }), 201).id as string;
  const [cluster] = ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200).results;
  return { admin, project: project as string, environment, cluster: cluster.id as string };
}

const makeRegistry = async (admin: Actor) =>
  ok(
    await admin.post(`/organization/${admin.organizationId}/containerRegistry`, {
      name: newId(),
      kind: 'DOCKER_HUB',
      url: 'https://docker.io',
      config: {},
    }),
    201,
  ).id as string;

async function makeContainer(admin: Actor, environment: string, body: object = {}) {
  const registry_id = await makeRegistry(admin);
  const container = { name: newId(), registry_id, image_name: 'library/nginx', tag: '1.27', ...body };
  return ok(await admin.post(`/environment/${environment}/container`, container), 201);
}

const APPLICATION = { git_repository: { url: 'https://git.invalid/acme/shop.git', branch: 'main' } };
const makeApplication = async (admin: Actor, environment: string, body: object = {}) =>
  ok(await admin.post(`/environment/${environment}/application`, { name: newId(), ...APPLICATION, ...body }), 201);

describe('last_deployment_state, the one field that watching clients read', () => {
  test('equals state while a request is under way, whatever ended before it', async () => {
    const { admin, environment } = await makePlace();
    const status = async () => ok(await admin.get(`/environment/${environment}/status`), 200);
    expect(await status()).toMatchObject({ state: 'READY', last_deployment_state: 'READY' });
    await makeContainer(admin, environment);
    ok(await admin.post(`/environment/${environment}/stop?wait=40`), 200);
    expect(await status()).toMatchObject({ state: 'STOPPED', last_deployment_state: 'STOPPED' });
    const requested = ok(await admin.post(`/environment/${environment}/deploy`), 200);
    expect(requested.last_deployment_state).toBe(requested.state);
    expect(requested.state).not.toBe('STOPPED');
    await expect.poll(async () => (await status()).state).toMatch(/^DEPLOYED$|ERROR$/);
    const { state, last_deployment_state } = await status();
    expect(last_deployment_state).toBe(state);
  });

  test('is terminal after a dry run, of an environment that was never deployed too', async () => {
    const { admin, environment } = await makePlace();
    const repository = repositories.make();
    repository.commit({ 'main.tf': 'output "a" { value = 1 }\n' });
    const service = ok(
      await admin.post(`/environment/${environment}/terraform`, {
        name: 'infra',
        terraform_files_source: { git: { git_repository: { url: repository.url, branch: 'main' } } },
        terraform_variables_source: { tf_var_file_paths: [], tf_vars: [] },
        backend: { kubernetes: {} },
        engine: 'TERRAFORM',
        provider_version: { read_from_terraform_block: false, explicit_version: '1.13.0' },
        job_resources: { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 1 },
      }),
      201,
    );
    const planned = ok(await admin.post(`/terraform/${service.id}/deploy?wait=40`, { action: 'PLAN' }), 200);
    expect(planned.state).not.toMatch(/ERROR/);
    const after = ok(await admin.get(`/environment/${environment}/status`), 200);
    expect(after.last_deployment_state).toBe('DEPLOYED');
  });
});

describe('a blank value', () => {
  test('is an absent one in ids, tags and commits of bodies, and null is the empty body', async () => {
    const { admin, environment } = await makePlace();
    const container = await makeContainer(admin, environment, {
      ports: [{ id: '', internal_port: 80, publicly_accessible: false, protocol: 'HTTP' }],
      storage: [{ id: null, type: 'FAST_SSD', size: 1, mount_point: '/data' }],
    });
    expect(container.ports[0].id).toMatch(/^[0-9a-f-]{36}$/);
    const put = ok(
      await admin.put(`/container/${container.id}`, { ports: [{ ...container.ports[0], id: '' }], storage: [{ id: '', size: 1, mount_point: '/data' }] }), // prettier-ignore
      200,
    );
    expect(put.ports).toEqual(container.ports);
    expect(put.storage).toEqual(container.storage);
    expect(ok(await admin.post(`/container/${container.id}/deploy`, { image_tag: '' }), 200).state).toBeDefined();
    ok(await admin.post(`/container/${container.id}/deploy`, { image_tag: null }), 200);
    expect(ok(await admin.get(`/container/${container.id}`), 200).tag).toBe('1.27');

    const application = await makeApplication(admin, environment);
    ok(await admin.post(`/application/${application.id}/deploy`, { git_commit_id: '' }), 200);
    ok(await admin.post(`/application/${application.id}/deploy`, 'null'), 200);
    const [stage] = ok(await admin.get(`/environment/${environment}/deploymentStage`), 200).results;
    ok(await admin.put(`/deploymentStage/${stage.id}/service/${application.id}`, 'null'), 200);
    const lists = { containers: [{ id: container.id, image_tag: '' }], jobs: [{ id: '', image_tag: '' }] };
    ok(await admin.post(`/environment/${environment}/service/deploy`, lists), 200);
  });

  test('stays refused where a value is required or blank means something', async () => {
    const { admin, environment } = await makePlace();
    const container = await makeContainer(admin, environment);
    ok(await admin.post(`/environment/${environment}/container`, { name: newId(), registry_id: '', image_name: 'a', tag: 'b' }), 400); // prettier-ignore
    ok(await admin.put(`/container/${container.id}`, 'null'), 400);
    ok(await admin.put(`/container/${container.id}`, { name: '' }), 400);
    ok(await admin.post(`/container/${container.id}/deploy`, { image_tag: 'not a tag' }), 400);
  });
});

describe('a cluster', () => {
  test('tells its cloud credentials as an object though it has none, and takes a body without any', async () => {
    const { admin, cluster } = await makePlace();
    const url = `/organization/${admin.organizationId}/cluster/${cluster}/cloudProviderInfo`;
    expect(ok(await admin.get(url), 200).credentials).toEqual({});
    for (const body of [{ region: 'here' }, { credentials: null }, { credentials: { id: '' } }, {}, undefined, 'null'])
      expect(ok(await admin.post(url, body), 201)).toMatchObject({ credentials: {}, region: 'here' });
  });

  test('takes features by their names and answers them', async () => {
    const { admin } = await makePlace();
    const features = [
      { id: 'VPC_SUBNET', value: '10.0.0.0/16' },
      { id: 'STATIC_IP', value: true },
      { id: 'NAT_GATEWAY', value: { nat_gateway_type: null } },
    ];
    const body = { name: newId(), region: 'here', cloud_provider: 'ON_PREMISE', features, runtime: 'fake' };
    const made = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, body), 201);
    expect(made.features).toMatchObject([
      { id: 'VPC_SUBNET', value_object: { type: 'STRING', value: '10.0.0.0/16' } },
      { id: 'STATIC_IP', value_object: { type: 'BOOLEAN', value: true } },
      { id: 'NAT_GATEWAY', value_object: { type: 'NAT_GATEWAY' } },
    ]);
    const other = { ...body, name: newId(), features: [{ id: 'TELEPORT' }] };
    ok(await admin.post(`/organization/${admin.organizationId}/cluster`, other), 400);
  });

  test('reads advanced settings that come as texts, and refuses texts that are no such value', async () => {
    const { admin, cluster } = await makePlace();
    const url = `/organization/${admin.organizationId}/cluster/${cluster}/advancedSettings`;
    const put = { 'loki.log_retention_in_week': '2', 'aws.vpc.enable_s3_flow_logs': 'true', 'database.redis.allowed_cidrs': '["10.0.0.0/8"]' }; // prettier-ignore
    expect(ok(await admin.put(url, put), 200)).toMatchObject({
      'loki.log_retention_in_week': 2,
      'aws.vpc.enable_s3_flow_logs': true,
      'database.redis.allowed_cidrs': ['10.0.0.0/8'],
    });
    for (const wrong of ['', 'two', '1.5', '0', 'null', '[2]'])
      ok(await admin.put(url, { 'loki.log_retention_in_week': wrong }), 400);
  });

  test('is found for its kubeconfig and token whatever organization the path names, by its own members only', async () => {
    const { admin, cluster } = await makePlace();
    const stranger = await app.organization();
    await app.db.updateTable('cluster').set({ runtime: 'kubernetes' }).where('id', '=', cluster).execute();
    const url = `/organization/${NIL}/cluster/${cluster}/kubeconfig`;
    expect((await admin.get(url)).body.message).toContain('has no kubeconfig yet');
    expect(ok(await stranger.get(url), 404).message).toBe('Cluster not found.');
    ok(await (await admin.withScope('READ')).get(url), 403);
    expect(ok(await admin.get(`/cluster/${cluster}/token`), 400).message).toContain('written only');
    ok(await stranger.get(`/cluster/${cluster}/token`), 404);
    ok(await (await admin.withScope('READ')).get(`/cluster/${cluster}/token`), 403);
    ok(await admin.get(`/organization/${NIL}/cluster/${cluster}/advancedSettings`), 404);
  });
});

describe('a service', () => {
  test('is not previewed unless its body asks for that', async () => {
    const { admin, environment } = await makePlace();
    const container = await makeContainer(admin, environment);
    expect(container.auto_preview).toBe(false);
    expect((await makeApplication(admin, environment)).auto_preview).toBe(false);
    expect(ok(await admin.put(`/container/${container.id}`, { auto_preview: true }), 200).auto_preview).toBe(true);
    expect(ok(await admin.put(`/container/${container.id}`, {}), 200).auto_preview).toBe(true);
  });

  test('keeps an empty entry point, and loses it where a change leaves it out', async () => {
    const { admin, environment } = await makePlace();
    const { id, entrypoint } = await makeContainer(admin, environment, { entrypoint: '' });
    expect(entrypoint).toBe('');
    const put = async (body: object) => ok(await admin.put(`/container/${id}`, body), 200);
    expect(await put({ entrypoint: '/run', cpu: 700, arguments: ['a'] })).toMatchObject({
      entrypoint: '/run',
      cpu: 700,
    });
    expect(await put({ memory: 300 })).toMatchObject({ cpu: 700, memory: 300, arguments: ['a'] });
    expect(await put({})).not.toHaveProperty('entrypoint');
    expect(await put({ entrypoint: null })).not.toHaveProperty('entrypoint');
  });

  test('keeps its autoscaling by KEDA on every cluster, and is refused at deployment where nothing scales by it', async () => {
    const { admin, environment } = await makePlace('docker');
    const scaler = { scaler_type: 'cron', role: 'PRIMARY', config_json: { timezone: 'Etc/UTC' } };
    const autoscaling = { mode: 'KEDA', polling_interval_seconds: 15, cooldown_period_seconds: 60, scalers: [scaler] };
    const container = await makeContainer(admin, environment, { autoscaling, min_running_instances: 0 });
    expect(container).toMatchObject({
      min_running_instances: 0,
      autoscaling: {
        ...autoscaling,
        id: expect.any(String),
        created_at: expect.any(String),
        service_id: container.id,
        scalers: [{ ...scaler, id: expect.any(String), created_at: expect.any(String), enabled: true }],
      },
    });
    expect(ok(await admin.put(`/container/${container.id}`, { cpu: 700 }), 200).autoscaling).toEqual(
      container.autoscaling,
    );
    const again = ok(await admin.put(`/container/${container.id}`, { autoscaling }), 200).autoscaling;
    expect([again.id, again.scalers[0].id]).toEqual([container.autoscaling.id, container.autoscaling.scalers[0].id]);
    const refused = ok(await admin.post(`/container/${container.id}/deploy`), 400);
    expect(refused.message).toContain('has autoscaling by KEDA');
    expect(ok(await admin.get(`/container/${container.id}/status`), 200).state).toBe('READY');
    const copy = ok(await admin.post(`/container/${container.id}/clone`, { name: newId(), environment_id: environment }), 201); // prettier-ignore
    expect(copy.autoscaling.id).not.toBe(container.autoscaling.id);
    expect(copy.autoscaling.service_id).toBe(copy.id);
    const put = ok(await admin.put(`/container/${container.id}`, { autoscaling: null }), 200);
    expect(put).not.toHaveProperty('autoscaling');
  });

  test('that is a database may have every version that existing clients know, and is deployed where that is run', async () => {
    const { admin, environment } = await makePlace('docker');
    const body = { name: newId(), type: 'REDIS', version: '6.2', mode: 'CONTAINER' };
    const database = ok(await admin.post(`/environment/${environment}/database`, body), 201);
    expect(database.version).toBe('6.2');
    expect(ok(await admin.post(`/database/${database.id}/deploy`), 400).message).toContain('no longer run here');
    const listed = async (of: { admin: Actor; environment: string }) =>
      ok(await of.admin.get(`/environment/${of.environment}/databaseConfiguration`), 200).results.find(
        (one: any) => one.database_type === 'REDIS',
      ).version.map((one: any) => one.name); // prettier-ignore
    expect(await listed({ admin, environment })).not.toContain('6.2');
    expect(await listed(await makePlace())).toContain('6.2');
  });

  test('that names no branch gets the one that HEAD of its repository names, else main', async () => {
    const { admin, environment } = await makePlace();
    const repository = repositories.make();
    repository.commit({ Dockerfile: 'FROM scratch' });
    repository.git('branch', '-m', 'trunk');
    const branchOf = ({ git_repository }: any) => git_repository.branch;
    for (const branch of [undefined, null, ''])
      expect(branchOf(await makeApplication(admin, environment, { git_repository: { url: repository.url, branch } }))).toBe('trunk'); // prettier-ignore
    const other = { url: 'https://git.invalid/acme/shop.git' };
    const { id } = await makeApplication(admin, environment, { git_repository: other });
    const put = async (git_repository: object) => branchOf(ok(await admin.put(`/application/${id}`, { git_repository }), 200)); // prettier-ignore
    expect(await put({ ...other })).toBe('main');
    expect(await put({ ...other, branch: 'release' })).toBe('release');
    expect(await put({ ...other, root_path: '/a' })).toBe('release');
    expect(await put({ url: repository.url })).toBe('trunk');
    const source = { docker: { git_repository: { url: repository.url } } };
    const job = { name: newId(), source, schedule: { on_start: {} } };
    expect(branchOf(ok(await admin.post(`/environment/${environment}/job`, job), 201).source.docker)).toBe('trunk');
  });

  test('whose repository does not answer gets main, on a cluster that asks it', async () => {
    const { admin, environment } = await makePlace('docker');
    const git_repository = { url: 'https://git.invalid/acme/shop.git', git_token_id: null };
    expect((await makeApplication(admin, environment, { git_repository })).git_repository.branch).toBe('main');
    const foreign = { name: newId(), git_repository: { ...git_repository, git_token_id: newId() } };
    ok(await admin.post(`/environment/${environment}/application`, foreign), 400);
  });

  test('that is a job may name a day that never comes, and has the icon of its type', async () => {
    const { admin, environment } = await makePlace();
    const registry_id = await makeRegistry(admin);
    const source = { image: { registry_id, image_name: 'library/nginx', tag: '1' } };
    const make = async (schedule: object) =>
      ok(await admin.post(`/environment/${environment}/job`, { name: newId(), source, schedule }), 201);
    const cron = await make({ cronjob: { scheduled_at: '0 0 31 2 *', entrypoint: '' } });
    expect(cron.schedule.cronjob).toMatchObject({ scheduled_at: '0 0 31 2 *', entrypoint: '' });
    expect(cron.icon_uri).toBe('app://qovery-console/cron-job');
    const lifecycle = await make({ on_start: {} });
    expect(lifecycle.icon_uri).toBe('app://qovery-console/lifecycle-job');
    const put = ok(await admin.put(`/job/${lifecycle.id}`, { schedule: { cronjob: { scheduled_at: '@daily' } } }), 200);
    expect(put.icon_uri).toBe('app://qovery-console/cron-job');
    const own = ok(await admin.put(`/job/${lifecycle.id}`, { icon_uri: 'app://mine' }), 200);
    expect(own.icon_uri).toBe('app://mine');
    expect(ok(await admin.put(`/job/${lifecycle.id}`, { cpu: 100 }), 200).icon_uri).toBe('app://mine');
  });
});

describe('what is taken and has no effect yet', () => {
  test('is answered with a warning, and what has effect without one', async () => {
    const { admin, environment } = await makePlace();
    const body = { name: 'büro', ...APPLICATION, auto_deploy: true };
    const made = await admin.post(`/environment/${environment}/application`, body);
    expect(ok(made, 201).auto_deploy).toBe(true);
    expect(made.headers['quarterdeck-warnings']).toBeUndefined();
    const edited = await admin.put(`/application/${made.body.id}`, { auto_deploy: false, auto_preview: true });
    expect(edited.headers).not.toHaveProperty('quarterdeck-warnings');
    const registry_id = await makeRegistry(admin);
    const source = { image: { registry_id, image_name: 'library/nginx', tag: '1' } };
    const task = { name: newId(), source, schedule: { on_start: {} }, auto_preview: true };
    const job = await admin.post(`/environment/${environment}/job`, task);
    ok(job, 201);
    expect(String(job.headers['quarterdeck-warnings'])).toContain('auto_preview: ');
    const image = { name: newId(), registry_id, image_name: 'library/nginx', tag: '1', auto_deploy: true, auto_preview: true }; // prettier-ignore
    const container = await admin.post(`/environment/${environment}/container`, image);
    ok(container, 201);
    expect(container.headers).not.toHaveProperty('quarterdeck-warnings');
  });
});

test('a Terraform service without a backend, or with more than one, is refused', async () => {
  const { admin, environment } = await makePlace();
  const body = {
    name: newId(),
    terraform_files_source: { git: APPLICATION },
    terraform_variables_source: { tf_var_file_paths: [], tf_vars: [] },
    engine: 'TERRAFORM',
    provider_version: { read_from_terraform_block: false, explicit_version: '1.13.0' },
    job_resources: { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 1 },
  };
  const post = (backend?: object) => admin.post(`/environment/${environment}/terraform`, { ...body, backend });
  for (const backend of [undefined, {}, { kubernetes: {}, user_provided: {} }])
    expect(ok(await post(backend), 400).errors[0].field).toMatch(/^backend/);
  const made = ok(await post({ user_provided: {} }), 201);
  expect(ok(await admin.put(`/terraform/${made.id}`, { cpu: 1 }), 200).backend).toEqual({ user_provided: {} });
});

test('lists of stages and of the queue tell their pages like every list', async () => {
  const { admin, environment } = await makePlace();
  const application = await makeApplication(admin, environment);
  const lists = [
    `/environment/${environment}/deploymentStage`,
    `/environment/${environment}/deploymentQueue`,
    `/service/${application.id}/deploymentQueue`,
  ];
  for (const list of lists) {
    const { results, pagination } = ok(await admin.get(list), 200);
    expect(pagination).toMatchObject({ page: 1, total_count: results.length });
    expect(ok(await admin.get(`${list}?page=1&page_size=1`), 200).pagination).toMatchObject({ page_size: 1 });
    ok(await admin.get(`${list}?page=0`), 400);
  }
});
