/**
 * The specification, section by section: what it prints is sent as it is printed, and what it names must be answered. Where it is silent
 * nothing is asked here; the other suites do that.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { kubernetesNamespaceOf } from '#resources/environment/index.ts';
import { ok, useApp, type Actor, type Answer } from '#test/harness/app.ts';
import { IN_CLUSTER, readArgoCds, useArgoCd } from '#test/harness/argo-cd.ts';
import { EXAMPLE, useEngine } from '#test/harness/engine.ts';
import { makeRegistry, useImages } from '#test/harness/images.ts';
import { usePretendedManagers, VAULT } from '#test/harness/secret-managers.ts';
import { freePort } from '#test/harness/free-port.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const DATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const id = expect.stringMatching(UUID);
const date = expect.stringMatching(DATE);
const git_repository = { url: EXAMPLE, branch: 'HEAD' };

const images = await useImages();
const managers = usePretendedManagers(await freePort());
const argo = useArgoCd({ beforeAll, afterAll });
const app = useApp({
  ...managers.settings(),
  QUARTERDECK_DATABASE_IMAGE_PREFIX: `${images.host}/`,
  QUARTERDECK_RATE_LIMIT_PER_HOUR: '100000',
});
useEngine(app);

let admin: Actor;
let org_id: string;
let project_id: string;
let env_id: string;
let app_id: string;
let db_id: string;
let container_id: string;
let terraform_id: string;
let cluster_id: string;

const make = async (url: string, body: unknown): Promise<any> => ok(await admin.post(url, body), 201);
const get = async (url: string): Promise<any> => ok(await admin.get(url), 200);
const project = (name: string) => make(`/organization/${org_id}/project`, { name, description: 'd' });

beforeAll(async () => {
  admin = await app.organization();
  org_id = admin.organizationId;
  cluster_id = (await get(`/organization/${org_id}/cluster`)).results[0].id;
  project_id = (await project('project')).id;
  const environment = { name: 'production', mode: 'PRODUCTION', cluster_id };
  env_id = (await make(`/project/${project_id}/environment`, environment)).id;
  app_id = (await make(`/environment/${env_id}/application`, application)).id;
  db_id = (await make(`/environment/${env_id}/database`, database)).id;
  const image = { registry_id: await makeRegistry(admin, images), image_name: 'acme/web', tag: '1' };
  container_id = (await make(`/environment/${env_id}/container`, { name: 'web', ...image, healthchecks: {} })).id;
  terraform_id = (await make(`/environment/${env_id}/terraform`, terraform)).id;
});

/** §4.2 prints these; the repository is one that is there. */
const application = {
  name: 'api',
  git_repository,
  build_mode: 'DOCKER',
  dockerfile_path: 'Dockerfile',
  cpu: 500,
  memory: 512,
  min_running_instances: 1,
  max_running_instances: 3,
  ports: [{ internal_port: 3000, external_port: 443, protocol: 'HTTP', publicly_accessible: true }],
};
const database = {
  name: 'store',
  type: 'POSTGRESQL',
  version: '18',
  mode: 'MANAGED',
  cpu: 500,
  memory: 512,
  storage: 10,
};
const terraform = {
  name: 'infrastructure',
  description: 'all of it',
  timeout_sec: 0,
  auto_deploy: false,
  auto_deploy_config: { auto_deploy: false, terraform_action: 'DEFAULT' },
  engine: 'TERRAFORM',
  backend: { kubernetes: {} },
  provider_version: { explicit_version: '1.11.4', read_from_terraform_block: false },
  job_resources: { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 1 },
  use_cluster_credentials: false,
  terraform_variables_source: {
    tf_var_file_paths: [],
    tf_vars: [
      { key: 'region', value: 'here', secret: false },
      { key: 'password', value: 'never-shown', secret: true },
    ],
  },
  terraform_files_source: { git: { git_repository } },
  action_extra_arguments: { plan: ['-parallelism=2'] },
  dockerfile_fragment: null,
};

describe('§2 resources and their fields', () => {
  test('§2 ids are UUIDs, dates are ISO 8601, names are compared without case', async () => {
    const one = await project('Shop');
    expect(one).toMatchObject({ id, name: 'Shop', description: 'd', created_at: date, updated_at: date });
    ok(await admin.post(`/organization/${org_id}/project`, { name: 'sHOP' }), 409);
  });

  test('§2.1 an environment', async () => {
    const environment = await get(`/environment/${env_id}`);
    expect(environment).toMatchObject({
      id: env_id,
      created_at: date,
      updated_at: date,
      name: 'production',
      organization: { id: org_id },
      project: { id: project_id },
      cloud_provider: { provider: expect.any(String), cluster: expect.any(String) },
      mode: 'PRODUCTION',
      cluster_id,
      last_updated_by: id,
      cluster_name: expect.any(String),
      expires_at: null,
    });
    for (const mode of ['DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING'])
      expect((await make(`/project/${project_id}/environment`, { name: `of ${mode}`, mode })).mode).toBe(mode);
    ok(await admin.post(`/project/${project_id}/environment`, { name: 'x', mode: 'TEST' }), 400);
  });

  test('§2.2 an entry of the statistics of environments', async () => {
    const { results } = await get(`/project/${project_id}/environment/stats`);
    expect(results).toContainEqual(expect.objectContaining({ id: env_id, service_total_number: 4 }));
  });

  test('§2.3 a status', async () => {
    const status = ok(await admin.post(`/application/${app_id}/deploy?wait=30`), 200);
    expect(status).toMatchObject({
      id: app_id,
      state: 'DEPLOYED',
      service_deployment_status: 'UP_TO_DATE',
      is_part_last_deployment: true,
      status_details: { action: 'DEPLOY', status: 'SUCCESS', sub_action: 'NONE' },
      deployment_request_id: id,
      deployment_requests_count: 0,
      last_deployment_date: date,
      execution_id: expect.any(String),
    });
    expect(status.steps).toMatchObject({
      total_duration_sec: expect.any(Number),
      total_computing_duration_sec: expect.any(Number),
    });
    for (const step of status.steps.details)
      expect(step).toEqual({
        step_name: expect.any(String),
        status: 'SUCCESS',
        duration_sec: expect.any(Number),
        started_at: date,
      });
  });

  test('§2.5 and §2.6 a Terraform service with its repository; secret values are not answered', async () => {
    const service = await get(`/terraform/${terraform_id}`);
    const { tf_vars, ...source } = terraform.terraform_variables_source;
    expect(service).toMatchObject({
      ...terraform,
      id: terraform_id,
      environment: { id: env_id },
      created_at: date,
      updated_at: date,
      service_type: 'TERRAFORM',
      icon_uri: expect.any(String),
      terraform_variables_source: source,
      terraform_files_source: {
        git: { git_repository: { url: EXAMPLE, branch: 'HEAD', provider: expect.any(String), root_path: '/' } },
      },
    });
    expect(service.terraform_variables_source.tf_vars).toHaveLength(tf_vars.length);
    expect(JSON.stringify(service)).not.toContain('never-shown');
    for (const wrong of [
      { timeout_sec: -1 },
      { engine: 'PULUMI' },
      { backend: {} },
      { backend: { kubernetes: {}, user_provided: {} } },
      { action_extra_arguments: { destroyAll: [] } },
      { auto_deploy: true, auto_deploy_config: { auto_deploy: false, terraform_action: 'DEFAULT' } },
    ])
      ok(await admin.post(`/environment/${env_id}/terraform`, { ...terraform, name: newId(), ...wrong }), 400);
  });

  test('§2.8 a variable and §2.9 a secret', async () => {
    const at = `/application/${app_id}`;
    const body = { key: 'Level', value: 'high', description: 'd'.repeat(255), enable_interpolation_in_file: false };
    const variable = await make(`${at}/environmentVariable`, body);
    expect(variable).toMatchObject({
      ...body,
      id,
      created_at: date,
      updated_at: date,
      scope: 'APPLICATION',
      variable_type: 'VALUE',
      overridden_variable: null,
      aliased_variable: null,
      service_id: app_id,
      service_name: 'api',
      service_type: 'APPLICATION',
      owned_by: expect.any(String),
    });
    await make(`${at}/environmentVariable`, { ...body, key: 'LEVEL' });
    ok(await admin.post(`${at}/environmentVariable`, { ...body, key: 'X', description: 'd'.repeat(256) }), 400);
    const secret = await make(`${at}/secret`, { ...body, key: 'TOKEN' });
    expect(secret).toMatchObject({ key: 'TOKEN', scope: 'APPLICATION', overridden_secret: null, aliased_secret: null });
    expect(secret).not.toHaveProperty('value');
  });
});

describe('§3 states and rules', () => {
  test('§3.3 an action answers its new state, and the polling client ends', async () => {
    const queued = ok(await admin.post(`/application/${app_id}/deploy`), 200);
    expect(queued).toMatchObject({
      state: expect.stringMatching(/^(DEPLOYMENT_QUEUED|WAITING_RUNNING|BUILDING|DEPLOYING)$/),
    });
    await expect.poll(async () => (await get(`/application/${app_id}/status`)).status).toBe('RUNNING');
  });

  test('§3.4 the hierarchy of variables and secrets', async () => {
    const [atProject, atEnvironment] = [`/project/${project_id}`, `/environment/${env_id}`];
    const at = `/application/${app_id}`;
    const high = await make(`${atProject}/environmentVariable`, { key: 'PLACE', value: 'project' });
    const low = await make(`${at}/environmentVariable`, { key: 'OWN', value: 'application' });
    const override = await make(`${atEnvironment}/environmentVariable/${high.id}/override`, { value: 'environment' });
    expect(override).toMatchObject({ key: 'PLACE', scope: 'ENVIRONMENT', variable_type: 'OVERRIDE' });
    // 2: an override stands lower than what it overrides; an environment sees nothing of what stands in a service.
    ok(await admin.post(`${atProject}/environmentVariable/${high.id}/override`, { value: 'v' }), 400);
    ok(await admin.post(`${atEnvironment}/environmentVariable/${low.id}/override`, { value: 'v' }), 404);
    // 4: the key of an override stays.
    ok(await admin.put(`${atEnvironment}/environmentVariable/${override.id}`, { key: 'OTHER', value: 'v' }), 400);
    const alias = await make(`${at}/environmentVariable/${high.id}/alias`, { key: 'SAME' });
    expect(alias.value).toBe('PLACE');
    // 5: the value of an alias stays; 6: there is no alias of an alias.
    ok(await admin.put(`${at}/environmentVariable/${alias.id}`, { key: 'SAME', value: 'other' }), 400);
    ok(await admin.post(`${at}/environmentVariable/${alias.id}/alias`, { key: 'AGAIN' }), 400);
    // 3: what is built in is not edited.
    const { results } = await get(`${at}/environmentVariable`);
    const builtIn = results.find((one: { scope: string }) => one.scope === 'BUILT_IN');
    const edit = await admin.put(`${at}/environmentVariable/${builtIn.id}`, { key: builtIn.key, value: 'v' });
    ok(edit, 400);
  });
});

describe('§4.1 the endpoints of the reference', () => {
  const endpoint = (number: number, name: string, run: () => Promise<unknown>) => test(`${number}. ${name}`, run);
  const isStatus = (answer: Answer, of: string) =>
    expect(ok(answer, 200)).toMatchObject({ id: of, status_details: { action: expect.any(String) } });

  endpoint(1, 'GET /project/{projectId}/environment/stats', async () => {
    const answer = await get(`/project/${project_id}/environment/stats`);
    expect(answer).not.toHaveProperty('pagination');
    expect(answer.results[0]).toMatchObject({ id, service_total_number: expect.any(Number) });
    ok(await admin.get(`/project/${newId()}/environment/stats`), 404);
  });
  endpoint(2, 'POST /terraform/{terraformId}/clone', async () => {
    const clone = await make(`/terraform/${terraform_id}/clone`, { name: 'clone', environment_id: env_id });
    expect(clone).toMatchObject({ id, name: 'clone', engine: 'TERRAFORM', environment: { id: env_id } });
    ok(await admin.post(`/terraform/${terraform_id}/clone`, { name: 'c', environment_id: newId() }), 400);
  });
  endpoint(3, 'POST /container/{containerId}/environmentVariable/{environmentVariableId}/alias', async () => {
    const source = await make(`/project/${project_id}/environmentVariable`, { key: 'ORIGIN', value: 'v' });
    const url = `/container/${container_id}/environmentVariable`;
    const alias = await make(`${url}/${source.id}/alias`, { key: 'TOO' });
    expect(alias).toMatchObject({ key: 'TOO', scope: 'CONTAINER', aliased_variable: { id: source.id, key: 'ORIGIN' } });
    ok(await admin.post(`${url}/${alias.id}/alias`, { key: 'THREE' }), 400);
  });
  endpoint(4, 'POST /environment/{environmentId}/secret/{secretId}/override', async () => {
    const source = await make(`/project/${project_id}/secret`, { key: 'HIDDEN', value: 'v' });
    const override = await make(`/environment/${env_id}/secret/${source.id}/override`, { value: 'w' });
    expect(override).toMatchObject({ key: 'HIDDEN', scope: 'ENVIRONMENT', overridden_secret: { id: source.id } });
  });
  endpoint(5, 'PUT /application/{applicationId}/secret/{secretId}', async () => {
    const { id: secret } = await make(`/application/${app_id}/secret`, { key: 'EDITED', value: 'v' });
    const url = `/application/${app_id}/secret/${secret}`;
    const edited = ok(await admin.put(url, { key: 'RENAMED', value: 'w', description: 'd' }), 200);
    expect(edited).toMatchObject({ id: secret, key: 'RENAMED', description: 'd' });
  });
  endpoint(6, 'POST /organization/{organizationId}/onboarding', async () => {
    const url = `/organization/${org_id}/onboarding`;
    expect(ok(await admin.post(url, {}), 200)).toEqual({ use_cases: '', status: 'IN_PROGRESS' });
    expect(ok(await admin.post(url, { status: 'DISMISSED', use_cases: 'a,b' }), 200)).toEqual({
      use_cases: 'a,b',
      status: 'DISMISSED',
    });
    ok(await admin.post(url, { status: 'DONE' }), 400);
  });
  endpoint(7, 'POST /job/{jobId}/redeploy', async () => {
    const schedule = { on_start: { arguments: [] } };
    const body = { name: 'migrate', source: { docker: { git_repository } }, schedule, healthchecks: {} };
    const { id: job } = await make(`/environment/${env_id}/job`, body);
    const forced = ok(await admin.post(`/job/${job}/redeploy?forceEvent=START`), 200);
    expect(forced).toMatchObject({ id: job, deployment_requests_count: 1 });
    const none = ok(await admin.post(`/job/${job}/redeploy?forceEvent=CRON`), 200);
    expect(none.deployment_requests_count, 'it has no such event').toBeLessThanOrEqual(1);
    expect(none.deployment_request_id).toBe(forced.deployment_request_id);
    isStatus(await admin.post(`/job/${job}/redeploy`), job);
    ok(await admin.post(`/job/${job}/redeploy?forceEvent=NEVER`), 400);
  });
  endpoint(8, 'GET /argocdApp/{argocdAppId}', async () => {
    ok(
      await admin.post(`/cluster/${cluster_id}/argoCdConfig`, { argocd_url: argo.url, argocd_token: argo.token }),
      200,
    );
    const mapping = { agent_cluster_id: cluster_id, argocd_cluster_url: IN_CLUSTER, cluster_id };
    ok(await admin.post(`/organization/${org_id}/argoCdDestinationClusterMapping`, mapping), 200);
    const namespace = kubernetesNamespaceOf(env_id);
    const operation = { phase: 'Succeeded', startedAt: '2026-03-01T10:00:00Z', finishedAt: '2026-03-01T10:00:09Z' };
    argo.put({ name: 'guestbook', destination: { namespace }, revision: 'a'.repeat(40), operation });
    await readArgoCds(app.platform);
    const { results } = await get(`/environment/${env_id}/services`);
    const one = results.find((service: { name: string }) => service.name === 'guestbook');
    expect(await get(`/argocdApp/${one.id}`)).toMatchObject({
      id,
      created_at: date,
      updated_at: date,
      name: 'guestbook',
      service_type: 'ARGOCD_APP',
      namespace,
      environment: { id: env_id },
      environment_id: env_id,
      cluster_id,
      icon_uri: expect.any(String),
      last_synced_at: date,
      manifest_revision: 'a'.repeat(40),
      git_repository: { url: expect.any(String) },
    });
    ok(await admin.get(`/argocdApp/${newId()}`), 404);
  });
  endpoint(9, 'POST /environment/{environmentId}/deploy', async () => {
    const { id: empty } = await make(`/project/${project_id}/environment`, { name: 'empty' });
    isStatus(await admin.post(`/environment/${empty}/deploy`), empty);
  });
  endpoint(10, 'POST /database/{databaseId}/restart-service', async () => {
    ok(await admin.post(`/database/${db_id}/deploy?wait=30`), 200);
    isStatus(await admin.post(`/database/${db_id}/restart-service`), db_id);
  });
  endpoint(11, 'GET /application/{applicationId}/status', async () =>
    isStatus(await admin.get(`/application/${app_id}/status`), app_id),
  );
  endpoint(12, 'GET /environment/{environmentId}', async () =>
    expect(await get(`/environment/${env_id}`)).toMatchObject({ id: env_id }),
  );
  endpoint(13, 'GET /secretManagerAccess/{secretManagerAccessId}/secrets', async () => {
    managers.secrets = { 'prod-a': '{}', 'prod-b': '{}' };
    const endpointOf = { mode: 'VAULT', url: managers.origin, mount: 'kv/apps', namespace: VAULT.namespace };
    const authentication = { mode: 'VAULT_TOKEN', token: VAULT.token };
    const cluster = await make(`/organization/${org_id}/cluster`, {
      name: 'with secrets',
      region: 'here',
      cloud_provider: 'ON_PREMISE',
      runtime: 'fake',
      additional_secret_manager_accesses: [{ name: 'prod', endpoint: endpointOf, authentication }],
    });
    const [access] = cluster.additional_secret_manager_accesses;
    expect(await get(`/secretManagerAccess/${access.id}/secrets`)).toEqual({ results: ['prod-a', 'prod-b'] });
    ok(await admin.get(`/secretManagerAccess/${newId()}/secrets`), 404);
  });
  endpoint(14, 'GET /organization/{organizationId}/targets', async () => {
    const at = `/organization/${org_id}/targets`;
    const { targets } = await get(`${at}?targetType=APPLICATION&projectId=${project_id}&environmentId=${env_id}`);
    expect(targets).toContainEqual({ id: app_id, name: 'api' });
    expect((await get(`${at}?eventType=CREATE&targetType=PROJECT&origin=API`)).targets.length).toBeGreaterThan(0);
    ok(await admin.get(`${at}?targetType=APPLICATION`), 400);
  });
  for (const [number, kind, body] of [
    [15, 'application', application],
    [16, 'container', undefined],
    [17, 'database', database],
  ] as const)
    endpoint(number, `DELETE /${kind}/{${kind}Id}`, async () => {
      const image = { registry_id: await makeRegistry(admin, images), image_name: 'a', tag: '1', healthchecks: {} };
      const { id: one } = await make(`/environment/${env_id}/${kind}`, { ...(body ?? image), name: newId() });
      ok(await (await admin.withScope('WRITE')).delete(`/${kind}/${one}`), 403);
      const gone = await admin.delete(`/${kind}/${one}?skipReconcile=true`);
      expect([gone.status, gone.body ?? '']).toEqual([204, '']);
      ok(await admin.get(`/${kind}/${one}`), 404);
    });
});

describe('§4.2 shapes of the usage examples', () => {
  test('organization and projects', async () => {
    expect(await get('/organization')).toMatchObject({ id: org_id, name: expect.any(String), created_at: date });
    const { results } = await get(`/organization/${org_id}/project`);
    expect(results).toContainEqual(
      expect.objectContaining({
        id: project_id,
        name: 'project',
        description: 'd',
        created_at: date,
        updated_at: date,
      }),
    );
  });

  test('an environment is made of name, mode and cluster', async () => {
    const body = { name: 'staging', mode: 'STAGING', cluster_id };
    expect(await make(`/project/${project_id}/environment`, body)).toMatchObject({ ...body, id, created_at: date });
  });

  test('an application is made and deployed, its variables and secrets are set, its log is read', async () => {
    const made = await make(`/environment/${env_id}/application`, { ...application, name: 'second' });
    const at = `/application/${made.id}`;
    const commit = (await get(`${at}/commit`)).results[0].git_commit_id;
    expect(ok(await admin.post(`${at}/deploy`, { git_commit_id: commit }), 200)).toMatchObject({
      id: made.id,
      status: expect.any(String),
    });
    await make(`${at}/environmentVariable`, { key: 'LOG_LEVEL', value: 'debug' });
    await make(`${at}/secret`, { key: 'API_KEY', value: 'hidden' });
    const { results } = await get(`${at}/environmentVariable`);
    expect(results).toContainEqual(expect.objectContaining({ key: 'LOG_LEVEL', value: 'debug' }));
    ok(await admin.get(`${at}/log?tail=0`), 400);
  });

  test('a database is made and deployed', async () => {
    const made = await make(`/environment/${env_id}/database`, { ...database, name: 'another' });
    expect(made).toMatchObject({ ...database, id, name: 'another' });
    expect(ok(await admin.post(`/database/${made.id}/deploy`), 200).id).toBe(made.id);
  });
});

test('§4.3 a webhook is made of target, events and a flag', async () => {
  const body = { target_url: 'https://example.com/hook', events: ['DEPLOYMENT_STARTED'], enabled: true };
  expect(await make(`/organization/${org_id}/webhook`, body)).toMatchObject({ ...body, id });
  const named = ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCEEDED', 'DEPLOYMENT_FAILED'];
  ok(await admin.post(`/organization/${org_id}/webhook`, { ...body, events: named }), 201);
  ok(await admin.post(`/organization/${org_id}/webhook`, { ...body, events: ['NOTHING'] }), 400);
});

test('§4.4 lists take page and page_size', async () => {
  const { results, pagination } = await get(`/organization/${org_id}/project?page=1&page_size=1`);
  expect(results).toHaveLength(1);
  expect(pagination).toMatchObject({ page: 1, page_size: 1, total_count: expect.any(Number) });
  expect(pagination.total_pages).toBe(pagination.total_count);
});

describe('§5 authentication', () => {
  test('either scheme is accepted, and a missing or invalid token gives 401', async () => {
    const url = `/organization/${org_id}/project`;
    for (const scheme of ['Token', 'Bearer'])
      ok(await app.anonymous('GET', url, undefined, { authorization: `${scheme} ${admin.token}` }), 200);
    ok(await app.anonymous('GET', url), 401);
    ok(await app.anonymous('GET', url, undefined, { authorization: 'Token nothing' }), 401);
  });

  test('scopes: Read reads, Deploy deploys, Write creates and edits, Admin deletes applications', async () => {
    const [reader, deployer, writer] = await Promise.all(
      (['READ', 'DEPLOY', 'WRITE'] as const).map((scope) => admin.withScope(scope)),
    );
    ok(await reader!.get(`/application/${app_id}`), 200);
    ok(await reader!.post(`/application/${app_id}/deploy`), 403);
    ok(await deployer!.post(`/application/${app_id}/deploy`), 200);
    ok(await deployer!.post(`/organization/${org_id}/project`, { name: newId() }), 403);
    ok(await writer!.post(`/organization/${org_id}/project`, { name: newId() }), 201);
    ok(await writer!.delete(`/application/${app_id}`), 403);
  });
});

test('§7 an error has status, error and message', async () => {
  const wrong = await admin.post(`/organization/${org_id}/project`, {});
  expect(wrong.body).toMatchObject({ status: 400, error: 'Bad Request', message: expect.stringContaining('name') });
  const missing = await admin.get(`/application/${newId()}`);
  expect(missing.body).toMatchObject({ status: 404, error: 'Not Found' });
});

test('§8 answers tell the rate limit', async () => {
  const { headers } = await admin.get(`/organization/${org_id}/project`);
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'])
    expect(Number(headers[name])).toBeGreaterThan(0);
});

test('§9 the document is OpenAPI 3.0 of version 1.0.4, and paths are served under /api/v1 too', async () => {
  const document = ok(await app.anonymous('GET', '/openapi.json'), 200);
  expect(document).toMatchObject({ openapi: expect.stringMatching(/^3\.0/), info: { version: '1.0.4' } });
  ok(await admin.get(`/api/v1/environment/${env_id}`), 200);
});
