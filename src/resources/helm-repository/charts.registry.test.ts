import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { findHelmRepository, readChartFile } from '#resources/helm-repository/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { ALLOW_LOOPBACK, packChart, startRegistry, type TestRegistry } from '#test/harness/registry.ts';
import { selfSigned } from '#test/harness/self-signed.ts';

const app = useApp(ALLOW_LOOPBACK);

const repositoriesOf = (admin: Actor) => `/organization/${admin.organizationId}/helmRepository`;
const SECRET = 'a-very-secret-password';
const BODY = {
  name: 'charts',
  kind: 'HTTPS',
  url: 'https://charts.example.com/stable',
  skip_tls_verification: false,
  config: { username: 'ada', password: SECRET },
};
const make = async (admin: Actor, body: object = {}) =>
  ok(await admin.post(repositoriesOf(admin), { ...BODY, ...body }), 201);
const fieldsOf = (body: { errors: { field: string }[] }) => body.errors.map(({ field }) => field).sort();

/** A Helm service as its kind keeps it. */
async function addHelm(admin: Actor, helm_repository_id: string) {
  const { environment } = await makeExample(admin);
  const { stage_id } = await app.db
    .selectFrom('service')
    .select('stage_id')
    .where('environment_id', '=', environment.id)
    .executeTakeFirstOrThrow();
  const service = {
    id: newId(),
    organization_id: admin.organizationId,
    environment_id: environment.id,
    stage_id,
    kind: 'HELM',
    name: 'chart',
    icon_uri: '',
    spec: JSON.stringify({ source: { repository: { helm_repository_id, chart_name: 'c', chart_version: '1.0.0' } } }),
  };
  await app.db.insertInto('service').values(service).execute();
  return service.id;
}

describe('a Helm repository', () => {
  test('keeps its credentials encrypted, and answers them nowhere', async () => {
    const admin = await app.organization();
    const answer = await admin.post(repositoriesOf(admin), BODY);
    const made = ok(answer, 201);
    expect(made).toMatchObject({ ...BODY, description: '', config: { username: 'ada' }, associated_services_count: 0 });
    expect(made.config).toEqual({ username: 'ada' });
    const url = `${repositoriesOf(admin)}/${made.id}`;
    expect(ok(await admin.get(url), 200)).toEqual(made);
    expect(ok(await admin.get(repositoriesOf(admin)), 200).results).toEqual([made]);
    expect(await findHelmRepository(app.context, admin.organizationId, made.id)).toMatchObject({ url: BODY.url });
    ok(await admin.put(url, { ...BODY, name: 'renamed', skip_tls_verification: true, config: {} }), 200);
    const row = await app.db
      .selectFrom('helm_repository')
      .selectAll()
      .where('id', '=', made.id)
      .executeTakeFirstOrThrow();
    const events = await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', made.id).execute();
    expect(events.map((event) => event.target_type)).toEqual(['HELM_REPOSITORY', 'HELM_REPOSITORY']);
    expect(JSON.stringify([answer.body, (await admin.get(url)).body, events, row.config])).not.toContain(SECRET);
    expect(row.secrets!.includes(SECRET)).toBe(false);
  });

  test.each([
    ['OCI_DOCKER_HUB', {}, 'oci://registry-1.docker.io'],
    ['OCI_PUBLIC_ECR', {}, 'oci://public.ecr.aws'],
    ['OCI_GITHUB_CR', { username: 'u', password: 'p' }, 'oci://ghcr.io'],
    [
      'OCI_SCALEWAY_CR',
      { region: 'fr-par', scaleway_access_key: 'a', scaleway_secret_key: 's' },
      'oci://rg.fr-par.scw.cloud',
    ],
  ])('of kind %s with %j is at %s', async (kind, config, url) => {
    const admin = await app.organization();
    const body = { name: 'r', kind, skip_tls_verification: false, config };
    expect(ok(await admin.post(repositoriesOf(admin), body), 201).url).toBe(url);
  });

  test.each([
    [{ skip_tls_verification: undefined }, ['skip_tls_verification']],
    [{ kind: 'GIT' }, ['kind']],
    [{ url: undefined }, ['url']],
    [{ url: 'oci://charts.example.com' }, ['url']],
    [{ url: 'https://169.254.169.254' }, ['url']],
    [{ kind: 'OCI_GENERIC_CR', url: 'oci://10.0.0.1/charts' }, ['url']],
    [{ config: { username: 'ada' } }, ['config.password']],
    [{ kind: 'OCI_ECR', url: 'oci://x.example', config: {} }, ['config.access_key_id', 'config.region', 'config.secret_access_key']], // prettier-ignore
  ])('is refused with %j, naming %j', async (change, fields) => {
    const admin = await app.organization();
    expect(fieldsOf(ok(await admin.post(repositoriesOf(admin), { ...BODY, ...change }), 400))).toEqual(fields);
  });

  test('does not send its secrets to another address without being given them again', async () => {
    const admin = await app.organization();
    const url = `${repositoriesOf(admin)}/${(await make(admin)).id}`;
    const moved = { ...BODY, url: 'https://attacker.example', config: { username: 'ada' } };
    expect(fieldsOf(ok(await admin.put(url, moved), 400))).toEqual(['config.password']);
    ok(await admin.put(url, { ...moved, url: 'https://charts.example.com/incubator' }), 200);
  });

  test('that services use stays, and tells which they are', async () => {
    const admin = await app.organization();
    const { id } = await make(admin);
    const url = `${repositoriesOf(admin)}/${id}`;
    const service = await addHelm(admin, id);
    expect(ok(await admin.get(url), 200).associated_services_count).toBe(1);
    expect(ok(await admin.get(`${url}/associatedServices`), 200).results).toMatchObject([
      { service_id: service, service_type: 'HELM' },
    ]);
    ok(await admin.delete(url), 409);
    await app.db.deleteFrom('service').where('id', '=', service).execute();
    ok(await admin.delete(url), 204);
    ok(await admin.get(url), 404);
  });

  test('is changed by administrators only, and is not there for another organization', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const { id } = await make(admin);
    const url = `${repositoriesOf(admin)}/${id}`;
    const writer = await admin.withScope('WRITE');
    ok(await writer.get(url), 200);
    ok(await writer.post(repositoriesOf(admin), BODY), 403);
    ok(await writer.put(url, BODY), 403);
    ok(await writer.delete(url), 403);
    for (const path of [url, `${repositoriesOf(other)}/${id}`, `${url}/charts`, `${url}/associatedServices`])
      ok(await other.get(path), 404);
    await expect(findHelmRepository(app.context, other.organizationId, id, 'source.id')).rejects.toMatchObject({
      errors: [{ field: 'source.id' }],
    });
  });

  test('has kinds, each with what it takes', async () => {
    const admin = await app.organization();
    const { results } = ok(await admin.get('/availableHelmRepository'), 200);
    expect(results).toHaveLength(8);
    expect(results).toContainEqual({
      kind: 'HTTPS',
      required_config: { username: 'string', password: 'string' },
      is_mandatory: false,
    });
  });
});

const VALUES = 'replicas: 3\n';
/** Text of a file of a chart in a repository with that id. */
const fileOf = (admin: Actor, repositoryId: string, chartName: string, chartVersion: string, file = 'values.yaml') => {
  const context = { ...app.context, signal: AbortSignal.timeout(20_000) };
  return readChartFile(context, admin.organizationId, { repositoryId, chartName, chartVersion }, file, 'source');
};

const INDEX = `apiVersion: v1
entries:
  shop:
  - {name: shop, version: 1.9.0, urls: [shop-1.9.0.tgz]}
  - {name: shop, version: 1.10.0, urls: [shop-1.10.0.tgz]}
  blog:
  - name: blog
    version: 0.1.0
`;

describe('charts of an index', () => {
  let admin: Actor;
  let server: Server;
  let base: string;
  /** Authorization headers by the path that they came to. */
  const seen: [string, string | undefined][] = [];
  const files: Record<string, string | Buffer> = {
    '/open/index.yaml': INDEX,
    '/json/index.yaml': JSON.stringify({ entries: { shop: [{ version: '1.0.0' }] } }),
    '/broken/index.yaml': 'entries: [}',
    '/alias/index.yaml': 'a: &a [x]\nentries: {b: *a}',
    '/none/index.yaml': 'hello: world',
    '/large/index.yaml': '#'.repeat(17 * 1024 * 1024),
  };
  beforeAll(async () => {
    admin = await app.organization();
    server = createServer((request, response) => {
      const { authorization } = request.headers;
      seen.push([request.url!, authorization]);
      if (request.url === '/closed/index.yaml')
        return response
          .writeHead(authorization === `Basic ${Buffer.from(`ada:${SECRET}`).toString('base64')}` ? 200 : 401)
          .end(INDEX);
      if (request.url === '/moved/index.yaml')
        return response.writeHead(302, { location: `${base.replace('127.0.0.1', 'localhost')}/open/index.yaml` }).end();
      if (request.url === '/round/index.yaml') return response.writeHead(302, { location: '/round/index.yaml' }).end();
      if (request.url === '/ill/index.yaml') return response.writeHead(503).end();
      const file = files[request.url!];
      return response.writeHead(file === undefined ? 404 : 200).end(file);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const charts = async (path: string, query = '', config: object = {}) => {
    const { id } = await make(admin, { url: `${base}/${path}`, config });
    return admin.get(`${repositoriesOf(admin)}/${id}/charts${query}`);
  };

  test('are answered with their versions, the newest first', async () => {
    const shop = { chart_name: 'shop', versions: ['1.10.0', '1.9.0'] };
    expect(ok(await charts('open'), 200).results).toEqual([shop, { chart_name: 'blog', versions: ['0.1.0'] }]);
    expect(ok(await charts('open/', '?chartName=shop'), 200).results).toEqual([shop]);
    expect(ok(await charts('open', '?chartName=nothing'), 200).results).toEqual([]);
    expect(ok(await charts('json'), 200).results).toEqual([{ chart_name: 'shop', versions: ['1.0.0'] }]);
  });

  test('are asked for with the credentials, which do not follow to another host', async () => {
    expect(ok(await charts('closed', '', BODY.config), 200).results).toHaveLength(2);
    ok(await charts('closed'), 400);
    seen.length = 0;
    expect(ok(await charts('moved', '', BODY.config), 200).results).toHaveLength(2);
    expect(seen).toEqual([
      ['/moved/index.yaml', expect.stringContaining('Basic')],
      ['/open/index.yaml', undefined],
    ]);
  });

  test('have files, wherever the index says that their archive is', async () => {
    const archive = await packChart('shop', '1.10.0', { files: { 'values.yaml': VALUES } });
    const digest = createHash('sha256').update(archive).digest('hex');
    const shop = (version: string, url: string, sum?: string) => ({ version, urls: [url], digest: sum });
    files['/files/index.yaml'] = JSON.stringify({
      entries: {
        shop: [
          shop('1.0.0', 'archives/shop.tgz', digest),
          shop('2.0.0', `${base.replace('127.0.0.1', 'localhost')}/files/archives/shop.tgz`),
          shop('3.0.0', 'archives/shop.tgz', '0'.repeat(64)),
          shop('4.0.0', 'archives/gone.tgz'),
          shop('5.0.0', 'index.yaml'),
        ],
      },
    });
    files['/files/archives/shop.tgz'] = archive;
    const { id } = await make(admin, { url: `${base}/files` });
    seen.length = 0;
    expect(await fileOf(admin, id, 'shop', '1.0.0')).toBe(VALUES);
    expect(await fileOf(admin, id, 'shop', '2.0.0')).toBe(VALUES);
    expect(seen.filter(([path]) => path.endsWith('.tgz')).map(([, authorization]) => authorization)).toEqual([
      expect.stringContaining('Basic'),
      undefined,
    ]);
    expect(await fileOf(admin, id, 'shop', '1.0.0', 'README.md')).toBeUndefined();
    expect(await fileOf(admin, id, 'shop', '1.0.0', '../../etc/passwd')).toBeUndefined();
    await expect(fileOf(admin, id, 'shop', '3.0.0')).rejects.toMatchObject({ code: 'bad_gateway' });
    await expect(fileOf(admin, id, 'shop', '4.0.0')).rejects.toMatchObject({ code: 'bad_request' });
    await expect(fileOf(admin, id, 'shop', '5.0.0')).rejects.toThrow('cannot be unpacked');
    await expect(fileOf(admin, id, 'shop', '9.0.0')).rejects.toMatchObject({
      errors: [{ field: 'source.chart_version' }],
    });
    await expect(fileOf(admin, id, 'none', '1.0.0')).rejects.toMatchObject({
      errors: [{ field: 'source.chart_name' }],
    });
    await expect(fileOf(admin, newId(), 'shop', '1.0.0')).rejects.toMatchObject({
      errors: [{ field: 'source.repository' }],
    });
  });

  test.each([
    ['missing', 400, 'no index.yaml'],
    ['broken', 400, 'is not the index'],
    ['alias', 400, 'is not the index'],
    ['none', 400, 'no entries'],
    ['large', 400, 'larger than'],
    ['ill', 502, 'answered 503'],
    ['round', 502, 'from one address to another'],
  ])('of a repository that is %s are %i', async (path, status, text) => {
    const answer = await charts(path);
    expect([answer.status, answer.body.message]).toEqual([status, expect.stringContaining(text)]);
  });

  test('come over TLS from a trusted certificate only, unless any will do', async () => {
    const tls = createTlsServer(selfSigned(), (_request, response) => void response.end(INDEX));
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void tls.close());
    const url = `https://127.0.0.1:${(tls.address() as AddressInfo).port}`;
    for (const [skip_tls_verification, status] of [
      [false, 502],
      [true, 200],
    ] as const) {
      const { id } = await make(admin, { url, config: {}, skip_tls_verification });
      ok(await admin.get(`${repositoriesOf(admin)}/${id}/charts`), status);
    }
  });
});

describe.each(['none', 'htpasswd', 'token'] as const)('charts of a real registry that wants %s', (auth) => {
  let registry: TestRegistry;
  let admin: Actor;
  beforeAll(async () => {
    [registry, admin] = [await startRegistry({ auth }), await app.organization()];
    for (const version of ['1.9.0', '1.10.0', '1.10.0+build.1']) await registry.pushChart('charts/shop', version);
    await registry.pushChart('elsewhere/blog', '0.1.0');
    await registry.pushImage('charts/image', '1.0.0');
  });
  afterAll(() => registry?.stop());

  const charts = async (path: string, query = '', config: object = registry.credentials ?? {}) => {
    const { id } = await make(admin, { kind: 'OCI_GENERIC_CR', url: `oci://${registry.host}${path}`, config });
    return admin.get(`${repositoriesOf(admin)}/${id}/charts${query}`);
  };

  test('are answered with their versions; images beside them are none', async () => {
    const versions = expect.arrayContaining(['1.10.0', '1.10.0+build.1', '1.9.0']);
    expect(ok(await charts('/charts'), 200).results).toEqual([{ chart_name: 'shop', versions }]);
    expect(ok(await charts('/charts', '?chartName=shop'), 200).results[0].versions.at(-1)).toBe('1.9.0');
    expect(ok(await charts(''), 200).results.map((chart: { chart_name: string }) => chart.chart_name)).toEqual([
      'charts/shop',
      'elsewhere/blog',
    ]);
    for (const none of ['image', 'nothing'])
      expect(ok(await charts('/charts', `?chartName=${none}`), 200).results).toEqual([]);
  });

  test('have files; what is no chart has none', async () => {
    await registry.pushChart('charts/filled', '1.0.0', { files: { 'values.yaml': VALUES } });
    const body = { kind: 'OCI_GENERIC_CR', url: `oci://${registry.host}/charts`, config: registry.credentials ?? {} };
    const { id } = await make(admin, body);
    expect(await fileOf(admin, id, 'filled', '1.0.0')).toBe(VALUES);
    expect(await fileOf(admin, id, 'shop', '1.10.0+build.1')).toBe('{}');
    await expect(fileOf(admin, id, 'image', '1.0.0')).rejects.toMatchObject({
      errors: [{ field: 'source.chart_name' }],
    });
    await expect(fileOf(admin, id, 'shop', '9.0.0')).rejects.toMatchObject({
      errors: [{ field: 'source.chart_version' }],
    });
  });

  test.skipIf(auth === 'none')('are refused with wrong credentials, which stand in no answer', async () => {
    const answer = await charts('/charts', '?chartName=shop', BODY.config);
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining('does not let us')]);
    expect(JSON.stringify(answer.body)).not.toContain(SECRET);
  });
});
