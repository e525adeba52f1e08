import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { registryAccess } from '#resources/registry/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { ALLOW_LOOPBACK, REGISTRY_USER, startRegistry, type TestRegistry } from '#test/harness/registry.ts';

const app = useApp(ALLOW_LOOPBACK);

const registriesOf = (admin: Actor) => `/organization/${admin.organizationId}/containerRegistry`;
const SECRET = 'a-very-secret-password';
const BODY = {
  name: 'ours',
  kind: 'GENERIC_CR',
  url: 'https://registry.example.com',
  config: { username: 'ada', password: SECRET },
};
const make = async (admin: Actor, body: object = {}) =>
  ok(await admin.post(registriesOf(admin), { ...BODY, ...body }), 201);
const fieldsOf = (body: { errors: { field: string }[] }) => body.errors.map(({ field }) => field).sort();
const accessOf = (admin: Actor, id: string) => registryAccess(app.context, admin.organizationId, id);

/** A container as its kind keeps it. */
async function addContainer(admin: Actor, registryId: string) {
  const { environment } = await makeExample(admin);
  const stage = await app.db
    .selectFrom('service')
    .select('stage_id')
    .where('environment_id', '=', environment.id)
    .executeTakeFirstOrThrow();
  const id = newId();
  const spec = JSON.stringify({ registry_id: registryId, image_name: 'app', tag: '1' });
  await app.db
    .insertInto('service')
    .values({
      id,
      organization_id: admin.organizationId,
      environment_id: environment.id,
      ...stage,
      kind: 'CONTAINER',
      name: 'box',
      icon_uri: '',
      spec,
    })
    .execute();
  return id;
}

describe('a container registry', () => {
  test('keeps its credentials encrypted, and answers them nowhere', async () => {
    const admin = await app.organization();
    const answer = await admin.post(registriesOf(admin), { ...BODY, description: 'd' });
    const made = ok(answer, 201);
    expect(made).toMatchObject({
      ...BODY,
      description: 'd',
      config: { username: 'ada' },
      associated_services_count: 0,
    });
    expect(made.config).toEqual({ username: 'ada' });
    const url = `${registriesOf(admin)}/${made.id}`;
    expect(ok(await admin.get(url), 200)).toEqual(made);
    expect(ok(await admin.get(registriesOf(admin)), 200).results).toEqual([made]);
    ok(await admin.put(url, { ...BODY, name: 'renamed' }), 200);
    const [row, events] = [
      await app.db.selectFrom('container_registry').selectAll().where('id', '=', made.id).executeTakeFirstOrThrow(),
      await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', made.id).execute(),
    ];
    expect(JSON.stringify([answer.body, (await admin.get(url)).body, events, row.config])).not.toContain(SECRET);
    expect(row.secrets!.includes(SECRET)).toBe(false);
    expect(events.map(({ event_type, target_type }) => [event_type, target_type]).sort()).toEqual([
      ['CREATE', 'CONTAINER_REGISTRY'],
      ['UPDATE', 'CONTAINER_REGISTRY'],
    ]);
    expect(await accessOf(admin, made.id)).toEqual({
      url: BODY.url,
      organizationId: admin.organizationId,
      host: 'registry.example.com',
      credentials: BODY.config,
    });
  });

  test.each([
    ['DOCKER_HUB', {}, 'https://docker.io', null],
    ['DOCKER_HUB', { username: 'u', password: 'p' }, 'https://docker.io', ['u', 'p']],
    ['GITHUB_CR', { username: 'u', password: 'p' }, 'https://ghcr.io', ['u', 'p']],
    ['GITLAB_CR', { username: 'u', password: 'p' }, 'https://registry.gitlab.com', ['u', 'p']],
    ['DOCR', { username: 't', password: 't' }, 'https://registry.digitalocean.com', ['t', 't']],
    ['PUBLIC_ECR', {}, 'https://public.ecr.aws', null],
    [
      'SCALEWAY_CR',
      { region: 'fr-par', scaleway_access_key: 'a', scaleway_secret_key: 's', scaleway_project_id: 'i' },
      'https://rg.fr-par.scw.cloud',
      ['nologin', 's'],
    ],
    [
      'GCP_ARTIFACT_REGISTRY',
      { region: 'europe-west9', json_credentials: '{"type":"service_account"}' },
      'https://europe-west9-docker.pkg.dev',
      ['_json_key', '{"type":"service_account"}'],
    ],
  ])('of kind %s with %j is at %s, and is entered as %j', async (kind, config, url, login) => {
    const admin = await app.organization();
    const made = ok(await admin.post(registriesOf(admin), { name: 'r', kind, config }), 201);
    expect(made.url).toBe(url);
    const credentials = login && { username: login[0], password: login[1] };
    expect(await accessOf(admin, made.id)).toMatchObject({ credentials });
  });

  test.each([
    ['ECR', { region: 'eu-west-3', role_arn: 'arn:aws:iam::1:role/r' }, 'role of AWS'],
    [
      'GCP_ARTIFACT_REGISTRY',
      {
        region: 'r',
        gcp_credentials_type: 'workload_identity_federation',
        project_id: 'p',
        service_account_email: 'e',
        workload_identity_provider_resource: 'w',
        token_lifetime_seconds: 3600,
      },
      'workload identity of Google Cloud',
    ],
    ['AZURE_CR', { azure_tenant_id: 't', azure_subscription_id: 's' }, 'directory of Azure'],
  ])(
    'of kind %s with an identity in a cloud is kept and answered, and says what it takes when used',
    async (kind, config, text) => {
      const admin = await app.organization();
      const made = await make(admin, { kind, config });
      expect(made.config).toEqual(config);
      await expect(accessOf(admin, made.id)).rejects.toThrow(text);
      const images = await admin.get(`${registriesOf(admin)}/${made.id}/images?imageName=a`);
      expect([images.status, images.body.message]).toEqual([400, expect.stringContaining(text)]);
    },
  );

  test.each([
    [{ name: ' ' }, ['name']],
    [{ kind: 'QUAY' }, ['kind']],
    [{ url: 'file:///etc' }, ['url']],
    [{ url: 'https://10.0.0.1' }, ['url']],
    [{ url: undefined }, ['url']],
    [{ config: { username: 'ada' } }, ['config.password']],
    [{ config: { ...BODY.config, region: 'here' } }, ['config.region']],
    [{ kind: 'ECR', config: {} }, ['config.access_key_id', 'config.region', 'config.secret_access_key']],
    [{ kind: 'ECR', config: { role_arn: 'x' } }, ['config.region']],
    [{ kind: 'ECR', config: { region: 'x/../y' } }, ['config.region']],
    [{ kind: 'PUBLIC_ECR', config: BODY.config }, ['config.password', 'config.username']],
  ])('is refused with %j, naming %j', async (change, fields) => {
    const admin = await app.organization();
    expect(fieldsOf(ok(await admin.post(registriesOf(admin), { ...BODY, ...change }), 400))).toEqual(fields);
  });

  test('keeps what an edit leaves out, takes what is new, and forgets what is empty', async () => {
    const admin = await app.organization();
    const { id } = await make(admin, { description: 'd' });
    const url = `${registriesOf(admin)}/${id}`;
    const edit = async (body: object) => ok(await admin.put(url, { name: 'ours', kind: 'GENERIC_CR', ...body }), 200);
    expect(await edit({ config: {} })).toMatchObject({ description: 'd', url: BODY.url, config: { username: 'ada' } });
    await edit({ config: { username: 'bob' } });
    expect((await accessOf(admin, id))!.credentials).toEqual({ username: 'bob', password: SECRET });
    await edit({ config: { password: 'other' }, url: `${BODY.url}/team` });
    expect((await accessOf(admin, id))!.credentials).toEqual({ username: 'bob', password: 'other' });
    await edit({ config: { username: '', password: '' } });
    expect((await accessOf(admin, id))!.credentials).toBeNull();
  });

  test('whose address nobody gave follows its region, as far as its secrets are given again', async () => {
    const admin = await app.organization();
    const config = { region: 'fr-par', scaleway_access_key: 'a', scaleway_secret_key: 's' };
    const made = await make(admin, { kind: 'SCALEWAY_CR', url: undefined, config });
    const edit = (change: object) =>
      admin.put(`${registriesOf(admin)}/${made.id}`, { name: 'r', kind: 'SCALEWAY_CR', config: change });
    expect(ok(await edit({}), 200).url).toBe('https://rg.fr-par.scw.cloud');
    expect(fieldsOf(ok(await edit({ region: 'nl-ams' }), 400))).toEqual(['config.scaleway_secret_key']);
    expect(ok(await edit({ ...config, region: 'nl-ams' }), 200).url).toBe('https://rg.nl-ams.scw.cloud');
  });

  test('does not send its secrets to another address without being given them again', async () => {
    const admin = await app.organization();
    const url = `${registriesOf(admin)}/${(await make(admin)).id}`;
    for (const to of ['https://attacker.example', 'http://registry.example.com', `${BODY.url}:444`]) {
      const answer = await admin.put(url, { ...BODY, url: to, config: { username: 'ada' } });
      expect(fieldsOf(ok(answer, 400))).toEqual(['config.password']);
    }
    expect(
      fieldsOf(ok(await admin.put(url, { ...BODY, kind: 'GITHUB_CR', config: { username: 'ada' } }), 400)),
    ).toEqual(['config.password']);
    ok(await admin.put(url, { ...BODY, url: 'https://other.example' }), 200);
  });

  test('that services use stays, and tells which they are', async () => {
    const admin = await app.organization();
    const { id } = await make(admin);
    const url = `${registriesOf(admin)}/${id}`;
    const service = await addContainer(admin, id);
    expect(ok(await admin.get(url), 200).associated_services_count).toBe(1);
    expect(ok(await admin.get(`${url}/associatedServices`), 200).results).toMatchObject([
      { service_id: service, service_name: 'box', service_type: 'CONTAINER' },
    ]);
    ok(await admin.delete(url), 409);
    await app.db.deleteFrom('service').where('id', '=', service).execute();
    ok(await admin.delete(url), 204);
    ok(await admin.get(url), 404);
    expect(await accessOf(admin, id)).toBeUndefined();
  });

  test('cannot be used by a service that comes while it is deleted', async () => {
    const admin = await app.organization();
    const { id } = await make(admin);
    const both = await Promise.allSettled([admin.delete(`${registriesOf(admin)}/${id}`), addContainer(admin, id)]);
    const deleted = both[0].status === 'fulfilled' && both[0].value.status === 204;
    expect([deleted, both[1].status]).toEqual(deleted ? [true, 'rejected'] : [false, 'fulfilled']);
  });

  test('is changed by administrators only, and is not there for another organization', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const { id } = await make(admin);
    const url = `${registriesOf(admin)}/${id}`;
    const writer = await admin.withScope('WRITE');
    ok(await writer.get(url), 200);
    ok(await writer.post(registriesOf(admin), BODY), 403);
    ok(await writer.put(url, BODY), 403);
    ok(await writer.delete(url), 403);
    for (const path of [url, `${registriesOf(other)}/${id}`, `${url}/images`, `${url}/associatedServices`])
      ok(await other.get(path), 404);
    expect(await accessOf(other, id)).toBeUndefined();
  });

  test('has kinds, each with what it takes', async () => {
    const admin = await app.organization();
    const { results } = ok(await admin.get('/availableContainerRegistry'), 200);
    expect(results).toHaveLength(11);
    expect(results).toContainEqual({
      kind: 'ECR',
      required_config: { region: 'string', access_key_id: 'string', secret_access_key: 'string' },
      is_mandatory: true,
    });
    expect(results).toContainEqual({ kind: 'PUBLIC_ECR', required_config: {}, is_mandatory: false });
  });
});

describe.each(['none', 'htpasswd', 'token'] as const)('images of a real registry that wants %s', (auth) => {
  let registry: TestRegistry;
  let admin: Actor;
  let images: string;
  beforeAll(async () => {
    [registry, admin] = [await startRegistry({ auth }), await app.organization()];
    for (const tag of ['1', '2']) await registry.pushImage('team/shop', tag);
    await registry.pushImage('other', 'latest');
    const { id } = await make(admin, { url: registry.url, config: registry.credentials ?? {} });
    images = `${registriesOf(admin)}/${id}/images`;
  });
  afterAll(() => registry?.stop());

  test('are answered by name, by search, and all', async () => {
    const shop = { image_name: 'team/shop', versions: ['1', '2'] };
    const other = { image_name: 'other', versions: ['latest'] };
    const asked = async (query: string) => ok(await admin.get(`${images}${query}`), 200).results;
    expect(await asked('?imageName=team/shop')).toEqual([shop]);
    expect(await asked('?imageName=team/none')).toEqual([]);
    expect(await asked('?search=sho')).toEqual([shop]);
    expect(await asked('')).toEqual([other, shop]);
    expect(ok(await admin.get(`${images}?page=2&page_size=1`), 200)).toMatchObject({
      results: [shop],
      pagination: { total_count: 2 },
    });
    ok(await admin.get(`${images}?search=a&imageName=b`), 400);
  });

  test('are checked for before a service is made of one', async () => {
    const { environment } = await makeExample(admin);
    const [registryId] = /[0-9a-f-]{36}(?=\/images)/.exec(images)!;
    const check = (tag: string) =>
      admin.post(`/environment/${environment.id}/checkContainerImage`, {
        registry_id: registryId,
        image_name: 'team/shop',
        tag,
      });
    ok(await check('1'), 200);
    ok(await check('9'), 400);
  });

  test.skipIf(auth === 'none')('are refused with wrong credentials, which stand in no answer', async () => {
    const config = { ...REGISTRY_USER, password: SECRET };
    const { id } = await make(admin, { url: registry.url, config });
    const answer = await admin.get(`${registriesOf(admin)}/${id}/images?imageName=team/shop`);
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining('does not let us')]);
    expect(JSON.stringify(answer.body)).not.toContain(SECRET);
  });
});

test('images of a registry that does not answer are 502', async () => {
  const admin = await app.organization();
  const { id } = await make(admin, { url: 'http://127.0.0.1:1' });
  ok(await admin.get(`${registriesOf(admin)}/${id}/images?imageName=a`), 502);
});
