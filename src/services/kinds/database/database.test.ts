import { describe, expect, test } from 'vitest';
import { newId, shortId } from '#kernel/ids.ts';
import { thawVariables } from '#services/capabilities/variables/index.ts';
import { resolveVariables } from '#deployments/model/variables.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { freezeSeen } from '#test/harness/variables.ts';

const app = useApp({ QUARTERDECK_PUBLISHED_PORTS: '30000-30002' });

async function makePlace(runtime = 'fake') {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id;
  if (runtime !== 'fake')
    await app.db.updateTable('cluster').set({ runtime }).where('organization_id', '=', admin.organizationId).execute();
  const environment = ok(await admin.post(`/project/${project}/environment`, { name: 'e' }), 201).id as string;
  return { admin, project: project as string, environment };
}

const EXAMPLE = { name: 'my-postgres', type: 'POSTGRESQL', version: '16', mode: 'MANAGED', cpu: 500, memory: 512, storage: 20 }; // prettier-ignore

const make = async (admin: Actor, environment: string, body: object = {}) =>
  ok(await admin.post(`/environment/${environment}/database`, { ...EXAMPLE, name: newId(), ...body }), 201);

const rowOf = (id: string) => app.db.selectFrom('service').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

/** Marks a database as deployed once: then it has files that a version must fit. */
const asDeployed = (id: string) =>
  app.db
    .updateTable('service')
    .set({ wanted: 'running', handle: JSON.stringify({ runtime: 'fake' }) })
    .where('id', '=', id)
    .execute();

/** Returns the fields that a refusal names. */
async function refused(answer: Promise<{ status: number; body: any }>) {
  const { status, body } = await answer;
  expect(status, JSON.stringify(body)).toBe(400);
  return (body.errors as { field: string; message: string }[]).map(({ field, message }) => `${field}: ${message}`);
}

describe('a database', () => {
  test('is made of the body that the specification prints, with a password that no answer and no event shows', async () => {
    const { admin, environment } = await makePlace();
    const made = ok(await admin.post(`/environment/${environment}/database`, EXAMPLE), 201);
    const host = `postgresql-z${shortId(made.id)}`;
    expect(made).toMatchObject({
      ...EXAMPLE,
      accessibility: 'PRIVATE',
      host,
      port: 5432,
      maximum_cpu: 500,
      maximum_memory: 512,
      disk_encrypted: false,
      annotations_groups: [],
      labels_groups: [],
      service_type: 'DATABASE',
      environment: { id: environment },
      icon_uri: 'app://qovery-console/database',
    });
    expect(Object.keys(made)).not.toEqual(expect.arrayContaining(['access', 'image', 'volume_id']));
    const master = ok(await admin.get(`/database/${made.id}/masterCredentials`), 200);
    expect(master).toEqual({ host, port: 5432, login: 'postgres', password: expect.stringMatching(/^[\w-]{32}$/) });
    const stored = JSON.stringify(await rowOf(made.id));
    const events = JSON.stringify(
      await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', made.id).execute(),
    );
    for (const text of [stored, events, JSON.stringify(made)]) expect(text).not.toContain(master.password);
    expect(ok(await admin.get(`/environment/${environment}/database`), 200).results).toEqual([made]);
    expect(ok(await admin.get(`/environment/${environment}/database/status`), 200).results).toMatchObject([
      { id: made.id, state: 'READY' },
    ]);
  });

  test('has its address, login and password in built-in variables, which open it', async () => {
    const { admin, environment } = await makePlace();
    const { id } = await make(admin, environment, { type: 'MONGODB', version: '7.0', accessibility: 'PUBLIC' });
    const application = ok(
      await admin.post(`/environment/${environment}/application`, {
        name: 'web',
        git_repository: { url: 'https://github.com/acme/shop.git', branch: 'main' },
      }),
      201,
    );
    const { organizationId } = admin;
    const frozen = await freezeSeen(app.context, { organizationId }, environment, application.id);
    const { variables } = resolveVariables(await thawVariables(app.context, organizationId, frozen));
    const values = Object.fromEntries(variables.map(({ key, value }) => [key, value]));
    const of = (part: string) => values[`QUARTERDECK_MONGODB_Z${shortId(id).toUpperCase()}_${part}`];
    const { host, port, login, password } = ok(await admin.get(`/database/${id}/masterCredentials`), 200);
    expect([of('HOST'), of('PORT'), of('LOGIN'), of('PASSWORD')]).toEqual([host, String(port), login, password]);
    expect(of('DATABASE_URL_INTERNAL')).toBe(
      `mongodb://root:${password}@mongodb-z${shortId(id)}:27017/app?authSource=admin`,
    );
  });

  test('shows its password to those who may change it only', async () => {
    const { admin, environment } = await makePlace();
    const { id } = await make(admin, environment);
    const url = `/database/${id}/masterCredentials`;
    for (const scope of ['READ', 'DEPLOY'] as const) ok(await (await admin.withScope(scope)).get(url), 403);
    ok(await (await admin.withScope('WRITE')).get(url), 200);
    ok(await (await app.organization()).get(url), 404);
  });

  test('is refused with a type, version, mode or name that is not there, and in another organization', async () => {
    const { admin, environment } = await makePlace();
    const post = (body: object) => admin.post(`/environment/${environment}/database`, { ...EXAMPLE, ...body });
    expect(await refused(post({ version: '9' }))).toEqual([
      'version: must be 18, 17, 16, 15, 14, 13, 12, 11, 10, or one of these with the rest of its number (18.1)',
    ]);
    for (const version of ['16.', '16.x', '160', '16/..', '']) await refused(post({ version }));
    await refused(post({ type: 'ORACLE' }));
    await refused(post({ mode: 'MAGIC' }));
    expect(await refused(post({ labels_groups: [{ id: newId() }] }))).toEqual([
      'labels_groups[0].id: names no labels group of this organization',
    ]);
    ok(await post({ version: '16.4' }), 201);
    ok(await post({}), 409);
    ok(await (await app.organization()).post(`/environment/${environment}/database`, EXAMPLE), 404);
    ok(await (await admin.withScope('DEPLOY')).post(`/environment/${environment}/database`, EXAMPLE), 403);
  });

  test('is upgraded within its major version only, and its storage never shrinks, once there are files', async () => {
    const { admin, environment } = await makePlace();
    const { id } = await make(admin, environment, { version: '16.2', storage: 20 });
    const put = (body: object) => admin.put(`/database/${id}`, body);
    ok(await put({ version: '15', storage: 5 }), 200);
    ok(await put({ version: '16.2', storage: 20 }), 200);
    await asDeployed(id);
    expect(await refused(put({ version: '17' }))).toEqual([
      'version: PostgreSQL 17 does not read the files of 16.2 (a new major version): create a database of version 17 and restore a backup of this one into it',
    ]);
    expect(await refused(put({ version: '15.9' }))).toEqual([expect.stringContaining("can't be taken back to 15.9")]);
    expect(await refused(put({ version: '16.1' }))).toEqual([expect.stringContaining("can't be taken back to 16.1")]);
    expect(await refused(put({ storage: 19 }))).toEqual(["storage: can't shrink: it has 20 GiB"]);
    expect(ok(await put({ version: '16.10', storage: 30 }), 200)).toMatchObject({ version: '16.10', storage: 30 });
    expect(ok(await put({ version: '16' }), 200).version).toBe('16');
    expect(await refused(put({ version: '16.10' }))).toHaveLength(1);
    expect(ok(await put({}), 200)).toMatchObject({ version: '16', storage: 30 });
  });

  test('gets a port of its own when it becomes public, gives it back, and says when there are no more', async () => {
    const { admin, environment } = await makePlace();
    const made = await Promise.all([1, 2, 3].map(() => make(admin, environment, { accessibility: 'PUBLIC' })));
    expect(made.map(({ port }) => port).sort()).toEqual([30000, 30001, 30002]);
    expect(made[0].host).toBe(`postgresql-z${shortId(made[0].id)}.localhost`);
    const another = await make(admin, environment);
    const publish = () => admin.put(`/database/${another.id}`, { accessibility: 'PUBLIC' });
    expect((await publish()).body.message).toMatch(/^All ports from 30000 to 30002/);
    ok(await admin.put(`/database/${made[0].id}`, { accessibility: 'PRIVATE' }), 200);
    expect(ok(await publish(), 200).port).toBe(made[0].port);
    const { password: before } = ok(await admin.get(`/database/${another.id}/masterCredentials`), 200);
    ok(await admin.put(`/database/${another.id}`, { name: 'renamed', memory: 1024 }), 200);
    expect(ok(await admin.get(`/database/${another.id}/masterCredentials`), 200)).toMatchObject({
      password: before,
      port: made[0].port,
    });
  });

  test('has a clone with a password, a volume and a port of its own', async () => {
    const { admin, environment } = await makePlace();
    const source = await make(admin, environment, { accessibility: 'PUBLIC' });
    const clone = ok(
      await admin.post(`/database/${source.id}/clone`, { name: 'copy', environment_id: environment }),
      201,
    );
    const [before, after] = [(await rowOf(source.id)).spec, (await rowOf(clone.id)).spec];
    expect(after.volume_id).not.toBe(before.volume_id);
    expect(after.access.external_port).not.toBe(before.access.external_port);
    const passwordOf = async (id: string) =>
      ok(await admin.get(`/database/${id}/masterCredentials`), 200).password as string;
    expect(await passwordOf(clone.id)).toMatch(/^[\w-]{32}$/);
    expect(await passwordOf(clone.id)).not.toBe(await passwordOf(source.id));
    ok(await admin.put(`/database/${clone.id}`, { accessibility: 'PRIVATE' }), 200);
    const whole = ok(await admin.post(`/environment/${environment}/clone`, { name: 'second' }), 201);
    const copies = ok(await admin.get(`/environment/${whole.id}/database`), 200).results;
    expect(copies).toHaveLength(2);
  });

  test('of a host cluster is a program of that machine, and others are refused at their deployment', async () => {
    const { admin, environment } = await makePlace('host');
    const list = ok(await admin.get(`/environment/${environment}/databaseConfiguration`), 200).results;
    expect(list).toEqual([
      {
        database_type: 'POSTGRESQL',
        version: [
          { name: '18', supported_mode: 'CONTAINER' },
          { name: '18', supported_mode: 'MANAGED' },
        ],
      },
    ]);
    const { id } = await make(admin, environment, { version: '18' });
    expect((await rowOf(id)).spec.image).toBe('host:postgresql/18');
    const post = (body: object) => admin.post(`/environment/${environment}/database`, { ...EXAMPLE, ...body });
    for (const body of [{ type: 'REDIS', version: '7' }, { version: '16' }]) {
      const other = ok(await post({ ...body, name: newId() }), 201);
      const { message } = ok(await admin.post(`/database/${other.id}/deploy`), 400);
      expect(message).toContain(`(host) can't run this: ${other.name} runs an image of a registry`);
    }
    expect(ok(await admin.get(`/database/${id}/version`), 200).results).toEqual([{ name: '18' }]);
  });

  test('can be had in every version that is listed, in both modes', async () => {
    const { admin, environment } = await makePlace();
    const list = ok(await admin.get(`/environment/${environment}/databaseConfiguration`), 200).results;
    expect(list.map((one: any) => one.database_type)).toEqual(['MONGODB', 'MYSQL', 'POSTGRESQL', 'REDIS']);
    for (const { database_type: type, version: versions } of list)
      for (const { name: version, supported_mode: mode } of versions) {
        const { id } = await make(admin, environment, { type, version, mode });
        expect((await rowOf(id)).spec.image).toMatch(new RegExp(`^docker\\.io/library/\\w+:${version}$`));
        const { results } = ok(await admin.get(`/database/${id}/version`), 200);
        expect(results).toContainEqual({ name: version });
      }
  });
});

describe('the link of an application with a database', () => {
  async function makePair() {
    const place = await makePlace();
    const { admin, environment } = place;
    const { id } = await make(admin, environment);
    const body = { name: newId(), git_repository: { url: 'https://github.com/acme/shop.git', branch: 'main' } };
    const application = ok(await admin.post(`/environment/${environment}/application`, body), 201).id as string;
    return { ...place, database: id as string, application };
  }
  const secretsOf = async (admin: Actor, application: string) =>
    ok(await admin.get(`/application/${application}/secret`), 200).results.filter(
      (one: any) => one.scope === 'APPLICATION',
    );

  test('gives it the URL under a key, is listed, and takes the key back when it goes', async () => {
    const { admin, database, application } = await makePair();
    const url = `/database/${database}/application`;
    expect(ok(await admin.post(`${url}/${application}`), 200).id).toBe(application);
    expect(ok(await admin.get(url), 200).results.map((one: any) => one.id)).toEqual([application]);
    expect(await secretsOf(admin, application)).toMatchObject([{ key: 'DATABASE_URL', variable_type: 'ALIAS' }]);
    ok(await admin.post(`${url}/${application}`, { key: 'OTHER' }), 409);
    expect(await secretsOf(admin, application)).toHaveLength(1);
    ok(await admin.delete(`${url}/${application}`), 204);
    expect(ok(await admin.get(url), 200).results).toEqual([]);
    expect(await secretsOf(admin, application)).toEqual([]);
    ok(await admin.delete(`${url}/${application}`), 404);
  });

  test('goes where its alias was deleted, and is refused across environments, organizations and taken keys', async () => {
    const { admin, database, application, project } = await makePair();
    const url = `/database/${database}/application`;
    ok(await admin.post(`/application/${application}/secret`, { key: 'DATABASE_URL', value: 'mine' }), 201);
    ok(await admin.post(`${url}/${application}`), 409);
    ok(await admin.post(`${url}/${application}`, { key: 'STORE' }), 200);
    const alias = (await secretsOf(admin, application)).find((one: any) => one.key === 'STORE');
    ok(await admin.delete(`/application/${application}/secret/${alias.id}`), 204);
    ok(await admin.delete(`${url}/${application}`), 204);
    const elsewhere = ok(await admin.post(`/project/${project}/environment`, { name: 'other' }), 201).id;
    const far = ok(
      await admin.post(`/application/${application}/clone`, { name: 'far', environment_id: elsewhere }),
      201,
    );
    ok(await admin.post(`${url}/${far.id}`), 400);
    const foreign = await makePair();
    ok(await admin.post(`${url}/${foreign.application}`), 404);
    ok(await foreign.admin.post(`${url}/${application}`), 404);
    ok(await (await admin.withScope('DEPLOY')).post(`${url}/${application}`), 403);
  });
});
