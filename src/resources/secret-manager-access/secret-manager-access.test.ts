import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine, makeExample } from '#test/harness/engine.ts';
import { AWS_KEYS, GCP_PROJECT, ROLE, SCALEWAY, usePretendedManagers, VAULT } from '#test/harness/secret-managers.ts';
import { rowsWith } from '#test/suites/fuzz/digest.ts';
import { freePort } from '#test/harness/free-port.ts';

const managers = usePretendedManagers(await freePort());
const said: string[] = [];
const app = useApp({ ...managers.settings(), QUARTERDECK_LOG_LEVEL: 'trace' }, {}, undefined, (line) =>
  said.push(line),
);
const engine = useEngine(app);

const keys = {
  mode: 'AWS_STATIC_CREDENTIALS',
  region: 'eu-west-3',
  access_key: AWS_KEYS.accessKeyId,
  secret_key: AWS_KEYS.secretAccessKey,
};
const vault = { mode: 'VAULT', url: managers.origin, mount: 'kv/apps', namespace: VAULT.namespace };
const region = 'eu-west-3';

/** Every way to be let in, with what would not be. */
const ACCESSES: [name: string, label: string, endpoint: object, authentication: object, wrong: object][] = [
  ['AWS Secrets Manager by a key', 'AWS Secrets Manager in eu-west-3', { mode: 'AWS_SECRET_MANAGER', region }, keys, { secret_key: 'x' }],
  ['AWS Secrets Manager by a role', 'AWS Secrets Manager in eu-west-3', { mode: 'AWS_SECRET_MANAGER', region }, { mode: 'AWS_ROLE_ARN', role_arn: ROLE.arn }, { role_arn: 'arn:aws:iam::1:role/x' }],
  ['AWS Parameter Store by a key', 'AWS Parameter Store in eu-west-3', { mode: 'AWS_PARAMETER_STORE', region }, keys, { secret_key: 'x' }],
  ['Google Cloud by a service account', 'Google Cloud Secret Manager of acme-prod', { mode: 'GCP_SECRET_MANAGER', region, project_id: GCP_PROJECT }, { mode: 'GCP_JSON_CREDENTIALS', json_credentials: managers.serviceAccount() }, { json_credentials: managers.serviceAccount().replace('reader@', 'writer@') }],
  ['Scaleway by a key', 'Scaleway Secret Manager in fr-par', { mode: 'SCALEWAY_SECRET_MANAGER', region: 'fr-par', project_id: SCALEWAY.projectId }, { mode: 'SCALEWAY_SECRET_KEY', secret_key: SCALEWAY.secretKey }, { secret_key: 'x' }],
  ['Vault by a token', 'Vault at 127.0.0.1', vault, { mode: 'VAULT_TOKEN', token: VAULT.token }, { token: 'x' }],
  ['Vault by AppRole', 'Vault at 127.0.0.1', vault, { mode: 'VAULT_APP_ROLE', role_id: VAULT.roleId, secret_id: VAULT.secretId }, { secret_id: 'x' }],
]; // prettier-ignore

let admin: Actor;
beforeEach(async () => {
  admin = await app.organization();
  ROLE.externalId = admin.organizationId;
  said.length = 0;
});

const clusters = (actor = admin) => `/organization/${actor.organizationId}/cluster`;
const fieldOf = ({ mode }: any) =>
  /VAULT|SCALEWAY/.test(mode) ? 'additional_secret_manager_accesses' : 'secret_manager_accesses';
const bodyOf = (endpoint: object, authentication: object, more: object = {}) => ({
  name: `c ${newId().slice(0, 8)}`,
  region: 'here',
  cloud_provider: 'ON_PREMISE',
  runtime: 'fake',
  [fieldOf(endpoint)]: [{ name: 'prod', endpoint, authentication, ...more }],
});
async function makeAccess(endpoint: object, authentication: object, actor = admin): Promise<string> {
  const cluster = ok(await actor.post(clusters(actor), bodyOf(endpoint, authentication)), 201);
  return cluster[fieldOf(endpoint)][0].id;
}
const makeAwsAccess = () => makeAccess({ mode: 'AWS_SECRET_MANAGER', region }, keys);
const secretsOf = (id: string, prefix?: string) =>
  admin.get(`/secretManagerAccess/${id}/secrets${prefix === undefined ? '' : `?namePrefix=${prefix}`}`);

const makeExternal = (parent: string, scope: string, key: string, name: string, access: string, more: object = {}) =>
  admin.post('/variable', {
    key,
    value: name,
    is_secret: false,
    variable_scope: scope,
    variable_parent_id: parent,
    secret_manager_access_id: access,
    ...more,
  });

async function deploy(applicationId: string) {
  const status = ok(await admin.post(`/application/${applicationId}/deploy?wait=40`, {}), 200);
  const rows = await app.db
    .selectFrom('deployment_service')
    .select('error')
    .where('service_id', '=', applicationId)
    .execute();
  return { state: status.state as string, error: rows.map(({ error }) => error).join('') };
}

describe.each(ACCESSES)('%s', (_name, label, endpoint, authentication, wrong) => {
  test('lists the names of its secrets, those with a prefix too, through all pages', async () => {
    managers.secrets = { 'prod-a': '{}', 'prod-b': '{}', 'other-prod-c': '{}', 'prod-d': '{}' };
    const id = await makeAccess(endpoint, authentication);
    expect(ok(await secretsOf(id), 200)).toEqual({ results: ['other-prod-c', 'prod-a', 'prod-b', 'prod-d'] });
    expect(ok(await secretsOf(id, 'prod-'), 200).results).toEqual(['prod-a', 'prod-b', 'prod-d']);
    expect(ok(await secretsOf(id, 'nothing'), 200).results).toEqual([]);
    const reader = await admin.withScope('READ');
    ok(await reader.get(`/secretManagerAccess/${id}/secrets`), 200);
  });

  test('that does not let us in, has a fault or is away is 502, which says which and no secret', async () => {
    const id = await makeAccess(endpoint, { ...authentication, ...wrong });
    const refused = ok(await secretsOf(id), 502).message;
    expect(refused).toContain(`prod (${label}`);
    expect(refused).toMatch(/does not accept|cannot be assumed|does not allow/);
    const right = await makeAccess(endpoint, authentication);
    for (const [instead, message] of [
      [{ status: 500, body: 'oops' }, /500/],
      [{ status: 429 }, /no more requests/],
      [{ status: 200, body: '<html>' }, /not understood|cannot be assumed/],
    ] as const) {
      managers.instead = instead;
      expect(ok(await secretsOf(right), 502).message).toMatch(message);
    }
    const secrets = [AWS_KEYS.secretAccessKey, VAULT.token, VAULT.secretId, SCALEWAY.secretKey, 'PRIVATE KEY'];
    for (const secret of secrets) expect(said.join('')).not.toContain(secret);
  });

  test('gives a deployment the secret that a variable names, and it is kept nowhere', async () => {
    const mark = `external-${newId()}`;
    const tls = { versions: [1.2, 1.3], ca: 'c'.repeat(20_000) };
    managers.secrets = { database: JSON.stringify({ password: mark, port: 5432, tls }) };
    const access = await makeAccess(endpoint, authentication);
    const { application, project } = await makeExample(admin);
    ok(await makeExternal(project.id, 'PROJECT', 'DB', 'database', access), 201);
    ok(await makeExternal(application.id, 'APPLICATION', 'DB_PASSWORD', 'database#password', access), 201);
    ok(await makeExternal(application.id, 'APPLICATION', 'DB_PORT', 'database#port', access), 201);
    ok(
      await makeExternal(application.id, 'APPLICATION', 'DB_FILE', 'database', access, { mount_path: '/run/db.json' }),
      201,
    );
    const alias = ok(await admin.get(`/variable?parent_id=${project.id}&scope=PROJECT`), 200).results.find(
      (one: any) => one.key === 'DB',
    );
    ok(
      await admin.post(`/application/${application.id}/environmentVariable/${alias.id}/alias`, { key: 'DB_ALIAS' }),
      201,
    );
    ok(
      await admin.post(`/application/${application.id}/environmentVariable`, {
        key: 'URL',
        value: 'pg://{{DB_PASSWORD}}',
      }),
      201,
    );
    expect(await deploy(application.id)).toEqual({ state: 'DEPLOYED', error: '' });
    const spec = engine.runtime.specOf(application.id)!;
    expect(spec.environment).toMatchObject({
      DB: managers.secrets.database,
      DB_ALIAS: managers.secrets.database,
      DB_PASSWORD: mark,
      DB_PORT: '5432',
      DB_FILE: '/run/db.json',
      URL: `pg://${mark}`,
    });
    expect(spec.files).toContainEqual({ path: '/run/db.json', content: managers.secrets.database });
    expect(await rowsWith(app, mark)).toEqual([]);
    expect(said.filter((line) => line.includes(mark))).toEqual([]);
    expect(ok(await admin.get(`/application/${application.id}/status`), 200).service_deployment_status).toBe(
      'UP_TO_DATE',
    );
  });
});

describe('an external secret', () => {
  test('is read anew by each deployment', async () => {
    managers.secrets = { key: 'one' };
    const access = await makeAwsAccess();
    const { application, environment } = await makeExample(admin);
    ok(await makeExternal(environment.id, 'ENVIRONMENT', 'KEY', 'key', access), 201);
    await deploy(application.id);
    managers.secrets = { key: 'two' };
    await deploy(application.id);
    expect(engine.runtime.specOf(application.id)!.environment.KEY).toBe('two');
  });

  test.each([
    ['is not there', 'gone', 'has no secret of that name'],
    ['may not be read', 'forbidden', 'does not allow the access this'],
    ['is no text', 'binary', 'no text in UTF-8'],
    ['has no such key', 'key#nothing', 'no JSON object with the key nothing'],
  ])('that %s ends the deployment, which names key, secret and manager', async (_what, name, message) => {
    managers.secrets = { key: '{"a":1}', binary: Buffer.from([0xff, 0xfe]).toString('base64') };
    const access = await makeAwsAccess();
    const { application } = await makeExample(admin);
    ok(await makeExternal(application.id, 'APPLICATION', 'KEY', name, access), 201);
    const { state, error } = await deploy(application.id);
    expect(state).toMatch(/_ERROR$/);
    expect(error).toContain(
      `No value for KEY: the external secret "${name}" of prod (AWS Secrets Manager in eu-west-3)`,
    );
    expect(error).toContain(message);
  });

  test('of a manager that is away ends the deployment, which names every key that waits for it', async () => {
    const access = await makeAccess({ ...vault, url: 'http://127.0.0.1:9' }, { mode: 'VAULT_TOKEN', token: 't' });
    const other = await makeAwsAccess();
    managers.secrets = { key: 'k' };
    const { application } = await makeExample(admin);
    ok(await makeExternal(application.id, 'APPLICATION', 'A', 'key', access), 201);
    ok(await makeExternal(application.id, 'APPLICATION', 'B', 'key', access), 201);
    ok(await makeExternal(application.id, 'APPLICATION', 'C', 'key', other), 201);
    const { state, error } = await deploy(application.id);
    expect(state).toMatch(/_ERROR$/);
    expect(error).toMatch(
      /No value for A and B: .* of prod \(Vault at 127\.0\.0\.1:9\): 127\.0\.0\.1:9 could not be reached/,
    );
    expect(error).not.toContain('for C:');
  });

  test('of a manager that does not answer is given up when the deployment is cancelled', async () => {
    const access = await makeAwsAccess();
    const { application, environment } = await makeExample(admin);
    ok(await makeExternal(application.id, 'APPLICATION', 'KEY', 'key', access), 201);
    const asked = new Promise<void>((resolve) => (managers.hang = resolve));
    ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
    await asked;
    const status = ok(await admin.post(`/environment/${environment.id}/cancelDeployment?wait=60`, {}), 200);
    expect(status.state).toBe('CANCELED');
  });

  test('is not asked for where only what a deployment would give is told', async () => {
    const access = await makeAwsAccess();
    const { application } = await makeExample(admin);
    ok(await makeExternal(application.id, 'APPLICATION', 'KEY', 'key', access), 201);
    ok(await admin.post(`/application/${application.id}/environmentVariable`, { key: 'URL', value: '{{KEY}}' }), 201);
    const { results } = ok(await admin.get(`/service/${application.id}/effectiveVariables`), 200);
    for (const key of ['KEY', 'URL'])
      expect(results.find((one: { key: string }) => one.key === key)).toMatchObject({
        value: null,
        is_secret: true,
        error: null,
      });
    expect(managers.requests).toEqual([]);
  });

  test('has an access that is there: of making the one and removing the other at once, one is refused', async () => {
    const { project } = await makeExample(admin);
    for (let round = 0; round < 5; round++) {
      const body = bodyOf({ mode: 'AWS_SECRET_MANAGER', region }, keys);
      const cluster = ok(await admin.post(clusters(), body), 201);
      const [made, removed] = await Promise.all([
        makeExternal(project.id, 'PROJECT', `KEY_${round}`, 'key', cluster.secret_manager_accesses[0].id),
        admin.put(`${clusters()}/${cluster.id}`, { ...body, secret_manager_accesses: [] }),
      ]);
      expect([
        [201, 409],
        [400, 200],
      ]).toContainEqual([made.status, removed.status]);
    }
  });

  test('that is overridden asks nobody', async () => {
    const access = await makeAwsAccess();
    const { application, project } = await makeExample(admin);
    const { id } = ok(await makeExternal(project.id, 'PROJECT', 'KEY', 'gone', access), 201);
    ok(await admin.post(`/application/${application.id}/environmentVariable/${id}/override`, { value: 'mine' }), 201);
    managers.requests.length = 0;
    expect((await deploy(application.id)).state).toBe('DEPLOYED');
    expect(managers.requests).toEqual([]);
    expect(engine.runtime.specOf(application.id)!.environment.KEY).toBe('mine');
  });

  test('is masked in what a deployment says', async () => {
    managers.secrets = { reason: `why-${newId()}` };
    const access = await makeAwsAccess();
    const { application } = await makeExample(admin);
    ok(await makeExternal(application.id, 'APPLICATION', 'FAIL_START', 'reason', access), 201);
    const { state, error } = await deploy(application.id);
    expect(state).toMatch(/_ERROR$/);
    expect(error).toContain('***');
    expect(await rowsWith(app, managers.secrets.reason!)).toEqual([]);
  });

  test('is listed with where it is seen, for those who may see that', async () => {
    const access = await makeAwsAccess();
    const { application, environment, project } = await makeExample(admin);
    ok(await makeExternal(project.id, 'PROJECT', 'P', 'p', access), 201);
    ok(await makeExternal(environment.id, 'ENVIRONMENT', 'E', 'e', access), 201);
    ok(await makeExternal(application.id, 'APPLICATION', 'A', 'a#b', access), 201);
    const second = ok(await admin.post(`/project/${project.id}/environment`, { name: 'second' }), 201);
    const at = {
      project_id: project.id,
      project_name: project.name,
      environment_id: environment.id,
      environment_name: 'e',
    };
    const url = `/secretManagerAccess/${access}/associatedServices`;
    expect(ok(await admin.get(url), 200).results).toEqual([
      { ...at, service_type: 'PROJECT', variable_name: 'P', external_secret_name: 'p' },
      { ...at, environment_id: second.id, environment_name: 'second', service_type: 'PROJECT', variable_name: 'P', external_secret_name: 'p' },
      { ...at, service_type: 'ENVIRONMENT', variable_name: 'E', external_secret_name: 'e' },
      { ...at, service_id: application.id, service_name: 'hello', service_type: 'APPLICATION', variable_name: 'A', external_secret_name: 'a#b' },
    ]); // prettier-ignore
    expect(ok(await admin.get(`${url}?page=2&page_size=3`), 200).results).toHaveLength(1);
    const other = await app.organization();
    ok(await other.get(url), 404);
    ok(await other.get(`/secretManagerAccess/${access}/secrets`), 404);
    ok(await admin.get(`/secretManagerAccess/${newId()}/secrets`), 404);
  });
});

describe('a role of AWS', () => {
  test('is assumed for the organization that names it only: its id is the external id', async () => {
    managers.secrets = { key: 'k' };
    const access = await makeAccess(
      { mode: 'AWS_SECRET_MANAGER', region },
      { mode: 'AWS_ROLE_ARN', role_arn: ROLE.arn },
    );
    ok(await secretsOf(access), 200);
    ROLE.externalId = newId();
    expect(ok(await secretsOf(access), 502).message).toContain(`the role ${ROLE.arn} cannot be assumed (AccessDenied)`);
  });
});

describe('folders of Vault', () => {
  test('where no engine is mounted are 502, which says where', async () => {
    const access = await makeAccess(vault, { mode: 'VAULT_TOKEN', token: VAULT.token });
    managers.instead = { status: 404, body: { errors: ['no handler for route "kv/apps/metadata/"'] } };
    expect(ok(await secretsOf(access), 502).message).toContain('no KV engine of version 2 at kv/apps');
    managers.instead = { status: 404, body: { errors: [] } };
    expect(ok(await secretsOf(access), 200).results).toEqual([]);
  });

  test('are looked into, as far as the prefix leads', async () => {
    managers.secrets = { 'shop/db': '{}', 'shop/api/key': '{}', 'other/key': '{}', top: '{}' };
    const access = await makeAccess(vault, { mode: 'VAULT_TOKEN', token: VAULT.token });
    expect(ok(await secretsOf(access), 200).results).toEqual(['other/key', 'shop/api/key', 'shop/db', 'top']);
    managers.requests.length = 0;
    expect(ok(await secretsOf(access, 'shop/'), 200).results).toEqual(['shop/api/key', 'shop/db']);
    expect(managers.requests.map(({ path }) => path)).not.toContain('/v1/kv/apps/metadata/other/?list=true');
    expect(ok(await secretsOf(access, 'sh'), 200).results).toEqual(['shop/api/key', 'shop/db']);
  });
});

describe('an access', () => {
  const list = 'additional_secret_manager_accesses';

  test('to a manager that the reference interface does not know stands in a list of its own, which only its own field changes', async () => {
    const cluster = ok(await admin.post(clusters(), bodyOf(vault, { mode: 'VAULT_TOKEN', token: 'very-secret' })), 201);
    expect(cluster.secret_manager_accesses).toEqual([]);
    expect(cluster[list]).toMatchObject([{ name: 'prod', endpoint: vault, authentication: { mode: 'VAULT_TOKEN' } }]);
    expect(JSON.stringify(cluster)).not.toContain('very-secret');
    const url = `${clusters()}/${cluster.id}`;
    const { [list]: given, ...body } = bodyOf(vault, {}) as Record<string, unknown>;
    expect(given).toHaveLength(1);
    expect(ok(await admin.put(url, { ...body, secret_manager_accesses: [] }), 200)[list]).toHaveLength(1);
    expect(ok(await admin.put(url, { ...body, [list]: [] }), 200)[list]).toEqual([]);
  });

  test('does not take its secret along to another server', async () => {
    const made = ok(await admin.post(clusters(), bodyOf(vault, { mode: 'VAULT_TOKEN', token: 'very-secret' })), 201);
    const id = made[list][0].id as string;
    const edit = (endpoint: object, authentication: object) =>
      admin.put(`${clusters()}/${made.id}`, bodyOf(endpoint, authentication, { id }));
    const elsewhere = { ...vault, url: 'https://attacker.example' };
    const refused = ok(await edit(elsewhere, { mode: 'VAULT_TOKEN' }), 400);
    expect(refused.errors[0].field).toBe(`${list}[0].authentication.token`);
    ok(await edit({ ...vault, mount: 'other' }, { mode: 'VAULT_TOKEN' }), 200);
    ok(await edit(elsewhere, { mode: 'VAULT_TOKEN', token: 'new' }), 200);
  });

  test.each([
    ['authentication.mode', { mode: 'AWS_SECRET_MANAGER', region }, { mode: 'GCP_JSON_CREDENTIALS', json_credentials: '{}' }],
    ['authentication.json_credentials', { mode: 'GCP_SECRET_MANAGER', region, project_id: 'p' }, { mode: 'GCP_JSON_CREDENTIALS', json_credentials: '{"a":1}' }],
    ['authentication.mode', vault, { mode: 'SCALEWAY_SECRET_KEY', secret_key: 'k' }],
    ['authentication.secret_id', vault, { mode: 'VAULT_APP_ROLE', role_id: 'r' }],
    ['endpoint.url', { ...vault, url: 'http://169.254.169.254' }, { mode: 'VAULT_TOKEN', token: 't' }],
    ['endpoint.url', { ...vault, url: 'http://vault.example.com' }, { mode: 'VAULT_TOKEN', token: 't' }],
    ['endpoint.url', { ...vault, url: 'https://user:password@vault.example.com' }, { mode: 'VAULT_TOKEN', token: 't' }],
    ['endpoint.url', { ...vault, url: 'https://' }, { mode: 'VAULT_TOKEN', token: 't' }],
  ])('is refused for a wrong %s: %j %j', async (field, endpoint, authentication) => {
    const { errors } = ok(await admin.post(clusters(), bodyOf(endpoint, authentication)), 400);
    expect(errors.map((one: any) => one.field)).toEqual([`${fieldOf(endpoint)}[0].${field}`]);
  }); // prettier-ignore

  test.each([
    ['a region that leads elsewhere', { mode: 'AWS_SECRET_MANAGER', region: 'x.attacker.example/' }, keys],
    ['a manager of the other list', { mode: 'VAULTED', url: managers.origin }, { mode: 'VAULT_TOKEN', token: 't' }],
  ])('is refused for %s', async (_what, endpoint, authentication) => {
    ok(await admin.post(clusters(), bodyOf(endpoint, authentication)), 400);
  });

  test.each([
    [{ mode: 'AWS_SECRET_MANAGER', region }, 'give AWS_STATIC_CREDENTIALS or AWS_ROLE_ARN'],
    [{ mode: 'GCP_SECRET_MANAGER', region, project_id: GCP_PROJECT }, 'give GCP_JSON_CREDENTIALS'],
  ])(
    'that its cluster would configure is refused, and what can be given instead is named',
    async (endpoint, wanted) => {
      const configured = { mode: 'AUTOMATICALLY_CONFIGURED' };
      const { errors } = ok(await admin.post(clusters(), bodyOf(endpoint, configured)), 400);
      expect(errors).toMatchObject([{ field: 'secret_manager_accesses[0].authentication.mode' }]);
      expect(errors[0].message).toContain(wanted);
    },
  );

  test('that its cluster would configure stays over edits where it is already, and is told to have no credentials', async () => {
    const body = bodyOf({ mode: 'AWS_SECRET_MANAGER', region }, keys);
    const cluster = ok(await admin.post(clusters(), body), 201);
    const [{ id }] = cluster.secret_manager_accesses;
    await app.db
      .updateTable('secret_manager_access')
      .set({ authentication: JSON.stringify({ mode: 'AUTOMATICALLY_CONFIGURED' }), secret: null })
      .where('id', '=', id)
      .execute();
    const access = { ...cluster.secret_manager_accesses[0], authentication: { mode: 'AUTOMATICALLY_CONFIGURED' } };
    ok(await admin.put(`${clusters()}/${cluster.id}`, { ...body, secret_manager_accesses: [access] }), 200);
    expect(ok(await secretsOf(id), 502).message).toContain('no credentials of its own');
  });
});
