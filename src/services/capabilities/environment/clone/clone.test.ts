import { describe, expect, test } from 'vitest';
import { shortId } from '#kernel/ids.ts';
import {
  makeApplication,
  makeEnvironment,
  makeProject,
  readersOf,
  recordsOf,
} from '#services/capabilities/service/clone/clone.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const { rowOf, valuesOf, eventsOf } = readersOf(app);

describe('the clone of an environment', () => {
  async function makeShop(admin: Actor) {
    const project = await makeProject(admin);
    const environment = await makeEnvironment(admin, project, 'shop');
    const [web, api] = [
      await makeApplication(admin, environment, 'web'),
      await makeApplication(admin, environment, 'api'),
    ];
    return { project, environment, web: web.id as string, api: api.id as string };
  }

  const servicesOf = async (admin: Actor, environment: string) => {
    const { results } = ok(await admin.get(`/environment/${environment}/services`), 200);
    return Object.fromEntries(results.map((one: any) => [one.name, one])) as Record<string, any>;
  };

  test('has its stages, services and variables, which refer to each other as in the original', async () => {
    const admin = await app.organization();
    const { environment, web, api } = await makeShop(admin);
    await app.db
      .updateTable('deployment_stage')
      .set({ name: 'FIRST', description: 'Before the others' })
      .where('id', '=', (await rowOf(web)).stage_id)
      .execute();
    const host = (id: string) => `QUARTERDECK_APPLICATION_Z${shortId(id).toUpperCase()}_HOST_INTERNAL`;
    const base = ok(
      await admin.post(`/environment/${environment}/environmentVariable`, { key: 'BASE', value: 'b' }),
      201,
    );
    ok(
      await admin.post(`/environment/${environment}/secret`, { key: 'URL', value: `http://{{${host(api)}}}/s3cret` }),
      201,
    );
    ok(await admin.post(`/application/${web}/environmentVariable/${base.id}/override`, { value: 'w' }), 201);
    ok(
      await admin.post(`/application/${web}/environmentVariable`, { key: 'API', value: `{{${host(api)}}}:3000` }),
      201,
    );
    const builtIns = await recordsOf(admin, `/application/${web}/environmentVariable`, 'BUILT_IN');
    ok(
      await admin.post(`/application/${web}/environmentVariable/${builtIns[host(api)].id}/alias`, { key: 'API_HOST' }),
      201,
    );

    const clone = ok(await admin.post(`/environment/${environment}/clone`, { name: 'copy' }), 201);
    const source = ok(await admin.get(`/environment/${environment}`), 200);
    const { id, created_at: _created, updated_at: _updated, name, ...same } = clone;
    expect(source).toMatchObject(same);
    expect(name).toBe('copy');

    const services = await servicesOf(admin, id);
    expect(Object.keys(services)).toEqual(['web', 'api']);
    expect(await valuesOf(web)).toEqual({
      BASE: 'w',
      URL: `http://app-z${shortId(api)}/s3cret`,
      API: `app-z${shortId(api)}:3000`,
      API_HOST: `app-z${shortId(api)}`,
    });
    expect(await valuesOf(services.web.id)).toEqual({
      BASE: 'w',
      URL: `http://app-z${shortId(services.api.id)}/s3cret`,
      API: `app-z${shortId(services.api.id)}:3000`,
      API_HOST: `app-z${shortId(services.api.id)}`,
    });
    const records = await recordsOf(admin, `/application/${services.web.id}/environmentVariable`, 'APPLICATION');
    const own = await recordsOf(admin, `/environment/${id}/environmentVariable`, 'ENVIRONMENT');
    expect(records.BASE).toMatchObject({ variable_type: 'OVERRIDE', overridden_variable: { id: own.BASE.id } });
    const keysOf = async (service: string) =>
      Object.keys(await recordsOf(admin, `/application/${service}/environmentVariable`, 'APPLICATION'));
    expect(await keysOf(services.web.id)).toEqual(await keysOf(web));

    const stages = (environmentId: string) =>
      app.db
        .selectFrom('deployment_stage')
        .select(['name', 'description', 'position'])
        .where('environment_id', '=', environmentId)
        .orderBy('position')
        .execute();
    expect(await stages(id)).toEqual(await stages(environment));
    expect(await app.db.selectFrom('deployment').select('id').where('environment_id', '=', id).execute()).toEqual([]);
    expect((await eventsOf(id)).map((event) => [event.event_type, event.change.cloned_from])).toEqual([
      ['CLONE', environment],
    ]);
  });

  test('stands where and as what is asked, and its variables follow it into another project', async () => {
    const admin = await app.organization();
    const { project, environment, web } = await makeShop(admin);
    const other = await makeProject(admin);
    const shared = ok(await admin.post(`/project/${project}/environmentVariable`, { key: 'SHARED', value: 's' }), 201);
    ok(await admin.post(`/application/${web}/environmentVariable/${shared.id}/alias`, { key: 'SHARED_TOO' }), 201);
    const body = { name: 'shop', project_id: other, mode: 'PRODUCTION' };
    const clone = ok(await admin.post(`/environment/${environment}/clone`, body), 201);
    expect(clone).toMatchObject({ name: 'shop', mode: 'PRODUCTION', project: { id: other } });
    const services = await servicesOf(admin, clone.id);
    const records = await recordsOf(admin, `/application/${services.web.id}/environmentVariable`, 'APPLICATION');
    expect(records.SHARED_TOO).toMatchObject({ variable_type: 'VALUE', value: 's' });
  });

  test('leaves out what is being deleted', async () => {
    const admin = await app.organization();
    const { environment, api } = await makeShop(admin);
    await app.db.updateTable('service').set({ deleting: true }).where('id', '=', api).execute();
    const { id } = ok(await admin.post(`/environment/${environment}/clone`, { name: 'copy' }), 201);
    expect(Object.keys(await servicesOf(admin, id))).toEqual(['web']);
  });

  test('of an empty environment is one', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin, await makeProject(admin));
    const { id } = ok(await admin.post(`/environment/${environment}/clone`, { name: 'copy' }), 201);
    expect(await servicesOf(admin, id)).toEqual({});
  });

  test('is refused under a taken name and with foreign ids, and takes WRITE', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { environment } = await makeShop(admin);
    const url = `/environment/${environment}/clone`;
    expect((await admin.post(url, { name: 'SHOP' })).status).toBe(409);
    const cluster = await app.db
      .selectFrom('cluster')
      .select('id')
      .where('organization_id', '=', stranger.organizationId)
      .executeTakeFirstOrThrow();
    for (const [body, field] of [
      [{ name: 'copy', project_id: await makeProject(stranger) }, 'project_id'],
      [{ name: 'copy', cluster_id: cluster.id }, 'cluster_id'],
      [{ name: 'copy', mode: 'TEST' }, 'mode'],
      [{}, 'name'],
    ] as const)
      expect(await admin.post(url, body)).toMatchObject({ status: 400, body: { errors: [{ field }] } });
    expect((await stranger.post(url, { name: 'copy' })).status).toBe(404);
    expect((await (await admin.withScope('DEPLOY')).post(url, { name: 'copy' })).status).toBe(403);
    await app.db.updateTable('environment').set({ deleting: true }).where('id', '=', environment).execute();
    expect((await admin.post(url, { name: 'copy' })).status).toBe(409);
    const left = await app.db
      .selectFrom('environment')
      .select('id')
      .where('organization_id', '=', admin.organizationId)
      .execute();
    expect(left).toHaveLength(1);
  });
});
