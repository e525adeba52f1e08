import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { ALLOW_LOOPBACK, packChart } from '#test/harness/registry.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const root = makeRepositoryRoot();
afterAll(() => root.remove());
const app = useApp(
  { ...ALLOW_LOOPBACK, QUARTERDECK_LOCAL_GIT_ROOTS: root.folder },
  { runtimeOf: async () => engine.runtime },
);
const engine = useEngine(app);

async function makePlace(runtime = 'fake') {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id;
  if (runtime !== 'fake')
    await app.db.updateTable('cluster').set({ runtime }).where('organization_id', '=', admin.organizationId).execute();
  const environment = ok(await admin.post(`/project/${project}/environment`, { name: 'e' }), 201).id as string;
  return { admin, environment };
}

const makeRepository = async (admin: Actor, url = 'https://charts.example.com') =>
  ok(
    await admin.post(`/organization/${admin.organizationId}/helmRepository`, {
      name: 'charts',
      kind: 'HTTPS',
      url,
      skip_tls_verification: false,
      config: {},
    }),
    201,
  ).id as string;

const makeToken = async (admin: Actor) =>
  ok(
    await admin.post(`/organization/${admin.organizationId}/gitToken`, {
      name: 'forge',
      type: 'GITHUB',
      token: 'a-token',
    }),
    201,
  ).id as string;

const GIT = { git_repository: { url: 'https://github.com/acme/charts.git', branch: 'main', root_path: '/shop' } };
const chartOf = (repository: string | null, change: object = {}) => ({
  helm_repository: { repository, chart_name: 'shop', chart_version: '1.0.0', ...change },
});
const make = async (admin: Actor, environment: string, body: object) =>
  ok(await admin.post(`/environment/${environment}/helm`, { name: newId(), ...body }), 201);

const VALUES = {
  set: [['image.tag', '1.4.0']],
  set_string: [['port', '8080']],
  set_json: [['limits', '{"memory": "512Mi"}']],
  file: {
    raw: { values: [{ name: 'values.yaml', content: 'password: "{{TOKEN}}"\n' }] },
    git: {
      git_repository: { url: 'https://gitlab.com/acme/team/values.git', branch: 'live', provider: 'GITLAB' },
      paths: ['shop/values.yaml'],
    },
  },
};

describe('a Helm service', () => {
  test('keeps a chart of a Helm repository with values in every form, and ports', async () => {
    const { admin, environment } = await makePlace();
    const repository = await makeRepository(admin);
    const made = await make(admin, environment, {
      source: chartOf(repository),
      values_override: VALUES,
      arguments: ['--atomic'],
      allow_cluster_wide_resources: true,
      auto_preview: null,
      ports: [
        { internal_port: 80, service_name: 'web', external_port: 443 },
        { name: 'grpc', internal_port: 80, protocol: 'GRPC', service_selectors: [{ key: 'app', value: 'api' }] },
      ],
    });
    expect(made).toMatchObject({
      service_type: 'HELM',
      icon_uri: 'app://qovery-console/helm',
      timeout_sec: 600,
      auto_deploy: false,
      auto_preview: false,
      allow_cluster_wide_resources: true,
      arguments: ['--atomic'],
      values_override: { set: VALUES.set, set_string: VALUES.set_string, set_json: VALUES.set_json },
    });
    expect(made.source).toEqual({
      repository: {
        chart_name: 'shop',
        chart_version: '1.0.0',
        repository: { id: repository, name: 'charts', url: 'https://charts.example.com' },
      },
    });
    // A reference to a secret stays one, wherever it is answered.
    expect(made.values_override.file.raw).toEqual(VALUES.file.raw);
    expect(made.values_override.file.git).toMatchObject({
      git_repository: { url: VALUES.file.git.git_repository.url, owner: 'acme/team', name: 'values', branch: 'live' },
      paths: ['shop/values.yaml'],
    });
    const common = { id: expect.any(String), internal_port: 80, external_port: 443 };
    expect(made.ports).toEqual([
      { ...common, port_type: 'SERVICE_NAME', name: 'p80', protocol: 'HTTP', is_default: true, service_name: 'web' }, // prettier-ignore
      { ...common, port_type: 'SERVICE_SELECTORS', name: 'grpc', protocol: 'GRPC', is_default: false, service_selectors: [{ key: 'app', value: 'api' }] }, // prettier-ignore
    ]);
    const links = ok(await admin.get(`/helm/${made.id}/link`), 200).results;
    expect(links.map((link: { url: string }) => new URL(link.url).hostname.split('.')[0])).toEqual([
      `helm-z${made.id.slice(0, 8)}`,
      `grpc-helm-z${made.id.slice(0, 8)}`,
    ]);
    ok(await admin.delete(`/organization/${admin.organizationId}/helmRepository/${repository}`), 409);
    expect(ok(await admin.get(`/helm/${made.id}/listServices`), 200).results).toEqual([]);
  });

  test.each([
    ['namespace', { namespace: 'shop' }, /must be left out: .*namespace of its environment/],
    ['external_port', { external_port: 8443 }, /must be 443 or left out/],
  ])('is not stored with a %s of a port that could have no effect', async (field, change, message) => {
    const { admin, environment } = await makePlace();
    const ports = [{ internal_port: 80, service_name: 'web', ...change }];
    const error = { errors: [{ field: `ports[0].${field}`, message: expect.stringMatching(message) }] };
    const body = { name: 'web', source: GIT };
    const { results } = ok(await admin.get(`/environment/${environment}/helm`), 200);
    expect(results).toEqual([]);
    expect(ok(await admin.post(`/environment/${environment}/helm`, { ...body, ports }), 400)).toMatchObject(error);
    expect(ok(await admin.get(`/environment/${environment}/helm`), 200).results).toEqual([]);
    const made = await make(admin, environment, body);
    expect(ok(await admin.put(`/helm/${made.id}`, { ...body, ports }), 400)).toMatchObject(error);
    expect(ok(await admin.get(`/helm/${made.id}`), 200).ports).toEqual([]);
  });

  test('takes back what it answered, keeps what a body leaves out, and moves to another source', async () => {
    const { admin, environment } = await makePlace();
    const ports = [{ internal_port: 80, service_name: 'web' }];
    const made = await make(admin, environment, { source: GIT, values_override: VALUES, ports });
    expect(made.source.git.git_repository).toMatchObject({ ...GIT.git_repository, owner: 'acme', name: 'charts' });
    const { updated_at: _, ...same } = made;
    const { source, values_override, name } = made;
    expect(ok(await admin.put(`/helm/${made.id}`, { name, source, values_override, ports }), 200)).toMatchObject(same);
    expect(ok(await admin.put(`/helm/${made.id}`, { name }), 200)).toMatchObject(same);
    const moved = ok(await admin.put(`/helm/${made.id}`, { name, source: chartOf(await makeRepository(admin)) }), 200);
    expect(moved.source).toMatchObject({ repository: { chart_name: 'shop' } });
    const emptied = ok(await admin.put(`/helm/${made.id}`, { name, values_override: {} }), 200);
    expect(emptied.values_override).toEqual({ set: [], set_string: [], set_json: [], file: null });
  });

  test.each([
    [{ source: {} }, 'source'],
    [{ source: { ...GIT, ...chartOf(newId()) } }, 'source'],
    [{ source: chartOf(null) }, 'source.helm_repository.repository'],
    [{ source: chartOf(newId()) }, 'source.helm_repository.repository'],
    [{ source: chartOf(newId(), { chart_name: undefined }) }, 'source.helm_repository.chart_name'],
    [{ source: chartOf(newId(), { chart_name: '../shop' }) }, 'source.helm_repository.chart_name'],
    [{ source: chartOf(newId(), { chart_version: undefined }) }, 'source.helm_repository.chart_version'],
    [{ source: chartOf(newId(), { chart_version: '^1.0.0' }) }, 'source.helm_repository.chart_version'],
    [{ source: { git_repository: { url: 'nowhere' } } }, 'source.git_repository.url'],
    [{ source: { git_repository: { ...GIT.git_repository, root_path: '../x' } } }, 'source.git_repository.root_path'],
    [{ source: { git_repository: { ...GIT.git_repository, git_token_id: newId() } } }, 'source.git_repository.git_token_id'], // prettier-ignore
    [{ values_override: { set: [['a']] } }, 'values_override.set[0]'],
    [{ values_override: { set_string: [['', 'b']] } }, 'values_override.set_string[0][0]'],
    [{ values_override: { set_json: [['a', '{']] } }, 'values_override.set_json[0][1]'],
    [{ values_override: { file: { raw: { values: [{ content: '' }] } } } }, 'values_override.file.raw.values[0].name'],
    [{ values_override: { file: { raw: { values: [{ name: '../v', content: '' }] } } } }, 'values_override.file.raw.values[0].name'], // prettier-ignore
    [{ values_override: { file: { raw: { values: [{ name: 'v' }] } } } }, 'values_override.file.raw.values[0].content'],
    [{ values_override: { file: { git: { ...VALUES.file.git, paths: [] } } } }, 'values_override.file.git.paths'],
    [{ values_override: { file: { git: { ...VALUES.file.git, paths: ['../v'] } } } }, 'values_override.file.git.paths[0]'], // prettier-ignore
    [{ arguments: ['--atomic', '--post-renderer=./run'] }, 'arguments[1]'],
    [{ arguments: ['-f/etc/passwd'] }, 'arguments[0]'],
    [{ ports: [{ internal_port: 80 }] }, 'ports[0].service_name'],
    [{ ports: [{ internal_port: 80, service_name: 'a', service_selectors: [] }] }, 'ports[0].service_selectors'],
    [
      {
        ports: [
          { internal_port: 80, service_name: 'a' },
          { internal_port: 80, service_name: 'b' },
        ],
      },
      'ports[1].name',
    ],
  ])('is refused with %j, naming %s', async (change, field) => {
    const { admin, environment } = await makePlace();
    const answer = await admin.post(`/environment/${environment}/helm`, { name: 'c', source: GIT, ...change });
    expect(answer.status, JSON.stringify(answer.body)).toBe(400);
    expect(answer.body.errors.map((error: { field: string }) => error.field)).toEqual([field]);
  });

  test('names nothing of another organization, and holds the git token of its values', async () => {
    const [{ admin, environment }, other] = [await makePlace(), await app.organization()];
    const elsewhere = { source: chartOf(await makeRepository(other)) };
    ok(await admin.post(`/environment/${environment}/helm`, { name: 'c', ...elsewhere }), 400);
    const git_token_id = await makeToken(admin);
    const git = { ...VALUES.file.git, git_repository: { ...VALUES.file.git.git_repository, git_token_id } };
    const made = await make(admin, environment, { source: GIT, values_override: { file: { git } } });
    expect(made.values_override.file.git.git_repository).toMatchObject({ git_token_id, git_token_name: 'forge' });
    const token = `/organization/${admin.organizationId}/gitToken/${git_token_id}`;
    expect(ok(await admin.get(token), 200).associated_services_count).toBe(1);
    ok(await admin.delete(token), 409);
  });

  test('is refused by a cluster without Kubernetes before anything is queued', async () => {
    const { admin, environment } = await makePlace('docker');
    const { id } = await make(admin, environment, { source: GIT });
    expect(ok(await admin.post(`/helm/${id}/deploy`), 400).message).toContain('runs on Kubernetes only');
    expect(ok(await admin.get(`/helm/${id}/status`), 200)).toMatchObject({ state: 'READY' });
    expect(ok(await admin.get(`/helm/${id}/deploymentHistory`), 200).results).toEqual([]);
  });
});

describe('a deployment of a Helm service', () => {
  test('makes the version that it names the configured one, and histories show it', async () => {
    const { admin, environment } = await makePlace();
    const { id } = await make(admin, environment, { source: chartOf(await makeRepository(admin)) });
    ok(await admin.post(`/helm/${id}/deploy?wait=30`, { chart_version: '1.1.0' }), 200);
    expect(ok(await admin.get(`/helm/${id}`), 200).source.repository.chart_version).toBe('1.1.0');
    const repository = { chart_name: 'shop', chart_version: '1.1.0' };
    expect(ok(await admin.get(`/helm/${id}/deploymentHistory`), 200).results).toMatchObject([{ repository }]);
    expect(ok(await admin.get(`/helm/${id}/deploymentHistoryV2`), 200).results[0].details).toMatchObject({
      repository,
    });
    const many = { helms: [{ id, chart_version: '1.2.0' }] };
    ok(await admin.post(`/environment/${environment}/service/deploy?wait=30`, many), 200);
    expect(ok(await admin.get(`/helm/${id}`), 200).source.repository.chart_version).toBe('1.2.0');
    for (const [body, field] of [
      [{ chart_version: 'newest' }, 'chart_version'],
      [{ git_commit_id: 'a'.repeat(40) }, 'git_commit_id'],
      [{ values_override_git_commit_id: 'a'.repeat(40) }, 'values_override_git_commit_id'],
    ] as const)
      expect(ok(await admin.post(`/helm/${id}/deploy`, body), 400).errors).toMatchObject([{ field }]);
    ok(await admin.post(`/helm/${id}/deploy?forceEvent=DIFF`, { chart_version: '2.0.0' }), 400);
  });

  test('takes commits of chart and values for itself alone; a redeploy repeats them', async () => {
    const { admin, environment } = await makePlace();
    const [chart, values] = [root.make(), root.make()];
    const [chartFirst, valuesFirst] = [chart.commit({ 'Chart.yaml': '1' }), values.commit({ 'v.yaml': 'a: 1' })];
    const [chartHead, valuesHead] = [chart.commit({ 'Chart.yaml': '2' }), values.commit({ 'v.yaml': 'a: 2' })];
    const { id } = await make(admin, environment, {
      source: { git_repository: { url: chart.url, branch: 'main' } },
      values_override: { file: { git: { git_repository: { url: values.url, branch: 'main' }, paths: ['v.yaml'] } } },
    });
    const deployed = async () => {
      const { source, values_override } = ok(await admin.get(`/helm/${id}`), 200);
      const git = [source.git, values_override.file.git] as { git_repository: { deployed_commit_id: string } }[];
      return git.map(({ git_repository }) => git_repository.deployed_commit_id);
    };
    ok(await admin.post(`/helm/${id}/deploy?wait=30`, { git_commit_id: chartFirst }), 200);
    expect(await deployed()).toEqual([chartFirst, valuesHead]);
    ok(await admin.post(`/helm/${id}/deploy?wait=30`, { values_override_git_commit_id: valuesFirst }), 200);
    expect(await deployed()).toEqual([chartHead, valuesFirst]);
    ok(await admin.post(`/helm/${id}/redeploy?wait=30`), 200);
    expect(await deployed()).toEqual([chartHead, valuesFirst]);
    ok(await admin.post(`/helm/${id}/deploy?wait=30`), 200);
    expect(await deployed()).toEqual([chartHead, valuesHead]);
    const commits = async (of: string) =>
      ok(await admin.get(`/helm/${id}/commit${of}`), 200).results.map((one: { git_commit_id: string }) => one.git_commit_id); // prettier-ignore
    expect(await commits('')).toEqual([chartHead, chartFirst]);
    expect(await commits('?of=values')).toEqual([valuesHead, valuesFirst]);
    const refused = ok(await admin.post(`/helm/${id}/deploy`, { chart_version: '1.0.0' }), 400);
    expect(refused.errors).toMatchObject([{ field: 'chart_version' }]);
  });

  test('that is a diff deploys nothing', async () => {
    const { admin, environment } = await makePlace();
    const { id } = await make(admin, environment, { source: chartOf(await makeRepository(admin)) });
    ok(await admin.post(`/helm/${id}/deploy?forceEvent=DIFF&wait=30`), 200);
    const status = ok(await admin.get(`/helm/${id}/status`), 200);
    expect(status.service_deployment_status).toBe('NEVER_DEPLOYED');
    const types = (await app.db.selectFrom('audit_event').select('event_type').where('target_id', '=', id).execute())
      .map(({ event_type }) => event_type); // prettier-ignore
    expect(types).toContain('TRIGGER_DEPLOY_DRY_RUN');
  });
});

describe('the values that a chart has by itself', () => {
  let server: Server;
  let base: string;
  beforeAll(async () => {
    const archive = await packChart('shop', '1.0.0', { files: { 'values.yaml': 'replicas: 3\n' } });
    const index = JSON.stringify({ entries: { shop: [{ version: '1.0.0', urls: ['shop.tgz'] }] } });
    server = createServer((request, response) => void response.end(request.url === '/index.yaml' ? index : archive));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  test('are read from its Helm repository', async () => {
    const { admin, environment } = await makePlace();
    const repository = await makeRepository(admin, base);
    const url = `/environment/${environment}/helmDefaultValues`;
    const answer = await admin.post(url, { source: chartOf(repository) });
    expect([answer.status, answer.body]).toEqual([201, 'replicas: 3\n']);
    for (const [change, field] of [
      [{ chart_version: '9.0.0' }, 'source.helm_repository.chart_version'],
      [{ chart_name: 'none' }, 'source.helm_repository.chart_name'],
      [{ repository: newId() }, 'source.helm_repository.repository'],
    ] as const)
      expect(ok(await admin.post(url, { source: chartOf(repository, change) }), 400).errors).toMatchObject([{ field }]);
    ok(await (await app.organization()).post(url, { source: chartOf(repository) }), 404);
  });

  test('are read from its folder in git; a chart without any has none', async () => {
    const { admin, environment } = await makePlace();
    const chart = root.make();
    chart.commit({
      'shop/Chart.yaml': 'name: shop',
      'shop/values.yaml': 'replicas: 2\n',
      'bare/Chart.yaml': 'name: b',
    });
    const read = (root_path: string) =>
      admin.post(`/environment/${environment}/helmDefaultValues`, {
        source: { git_repository: { url: chart.url, branch: 'main', root_path } },
      });
    expect([(await read('/shop')).status, (await read('/shop')).body]).toEqual([201, 'replicas: 2\n']);
    expect([(await read('/bare')).status, (await read('/bare')).body]).toEqual([201, '']);
    expect(ok(await read('/'), 400).errors).toMatchObject([{ field: 'source.git_repository.root_path' }]);
  });
});
