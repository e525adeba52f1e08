import { describe, expect, test } from 'vitest';
import { newId, shortId } from '#kernel/ids.ts';
import { findEnvironmentById } from '#resources/environment/index.ts';
import {
  makeApplication,
  makeEnvironment,
  makeProject,
  readersOf,
  recordsOf,
} from '#services/capabilities/service/clone/clone.fixture.ts';
import { copyServices, placeIn } from '#services/capabilities/service/clone/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { markAsFork } from '#test/harness/fork.ts';

const app = useApp();
const { rowOf, valuesOf, eventsOf } = readersOf(app);

describe('the clone of a service', () => {
  test('has its configuration under ids of its own, and neither domains nor status', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin, await makeProject(admin));
    const source = await makeApplication(admin, environment, 'web', {
      description: 'The shop',
      cpu: 250,
      storage: [{ size: 2, mount_point: '/data' }],
      auto_deploy: true,
    });
    const path = `/application/${source.id}`;
    ok(await admin.put(`${path}/advancedSettings`, { 'build.timeout_max_sec': 60 }), 200);
    ok(await admin.post(`${path}/deploymentRestriction`, { mode: 'MATCH', type: 'PATH', value: 'api' }), 201);
    const domain = `${shortId(source.id)}.example.com`;
    ok(await admin.post(`${path}/customDomain`, { domain, generate_certificate: true }), 201);
    await app.db
      .updateTable('service')
      .set({ wanted: 'running', handle: JSON.stringify({ runtime: 'fake' }), is_skipped: true })
      .where('id', '=', source.id)
      .execute();

    const clone = ok(await admin.post(`${path}/clone`, { name: ' copy ', environment_id: environment }), 201);
    const { id, created_at: _created, updated_at: _updated, name, ports, storage, ...same } = clone;
    expect(source).toMatchObject(same);
    expect([id, name]).toEqual([expect.not.stringMatching(source.id), 'copy']);
    expect(ports).toEqual([{ ...source.ports[0], id: expect.not.stringMatching(source.ports[0].id) }]);
    expect(storage).toEqual([{ ...source.storage[0], id: expect.not.stringMatching(source.storage[0].id) }]);
    expect(ok(await admin.get(`/application/${id}`), 200)).toEqual(clone);
    expect(ok(await admin.get(`/application/${id}/advancedSettings`), 200)['build.timeout_max_sec']).toBe(60);
    const restrictions = ok(await admin.get(`/application/${id}/deploymentRestriction`), 200).results;
    expect(restrictions).toMatchObject([{ mode: 'MATCH', value: 'api' }]);
    expect(ok(await admin.get(`/application/${id}/customDomain`), 200).results).toEqual([]);
    const [before, after] = [await rowOf(source.id), await rowOf(id)];
    expect(after).toMatchObject({ wanted: 'absent', handle: null, release_id: null, is_skipped: true });
    expect(after.stage_id).toBe(before.stage_id);
    expect((await eventsOf(id)).map((event) => [event.event_type, event.change.cloned_from])).toEqual([
      ['CLONE', source.id],
    ]);
  });

  test('in its environment has the same values: what it refers to is its own, or the same thing', async () => {
    const admin = await app.organization();
    const project = await makeProject(admin);
    const environment = await makeEnvironment(admin, project);
    const source = await makeApplication(admin, environment, 'web');
    const sibling = await makeApplication(admin, environment, 'api');
    const path = `/application/${source.id}`;
    const shared = ok(
      await admin.post(`/project/${project}/environmentVariable`, { key: 'LEVEL', value: 'high' }),
      201,
    );
    const token = ok(
      await admin.post(`/environment/${environment}/secret`, { key: 'TOKEN', value: 'shared-secret' }),
      201,
    );
    const plain = ok(
      await admin.post(`${path}/environmentVariable`, { key: 'PLAIN', value: 'a', description: 'kept' }),
      201,
    );
    ok(await admin.post(`${path}/environmentVariable`, { key: 'MIXED', value: '{{PLAIN}}-{{LEVEL}}' }), 201);
    ok(
      await admin.post(`${path}/environmentVariable`, { key: 'FILE', value: 'content', mount_path: '/etc/app.conf' }),
      201,
    );
    const own = ok(await admin.post(`${path}/secret`, { key: 'OWN', value: 'own-secret' }), 201);
    ok(await admin.post(`${path}/environmentVariable/${plain.id}/alias`, { key: 'PLAIN_TOO' }), 201);
    ok(await admin.post(`${path}/environmentVariable/${shared.id}/override`, { value: 'low' }), 201);
    ok(await admin.post(`${path}/secret/${token.id}/alias`, { key: 'TOKEN_TOO' }), 201);
    ok(await admin.post(`${path}/secret/${own.id}/alias`, { key: 'OWN_TOO' }), 201);
    const builtIns = await recordsOf(admin, `${path}/environmentVariable`, 'BUILT_IN');
    const keyOf = (id: string) => `QUARTERDECK_APPLICATION_Z${shortId(id).toUpperCase()}_HOST_INTERNAL`;
    for (const [key, id] of [['SELF', source.id], ['SIBLING', sibling.id]] as const)
      ok(await admin.post(`${path}/environmentVariable/${builtIns[keyOf(id)].id}/alias`, { key }), 201); // prettier-ignore

    const { id } = ok(await admin.post(`${path}/clone`, { name: 'copy', environment_id: environment }), 201);
    const values = await valuesOf(source.id);
    expect(values).toMatchObject({ MIXED: 'a-low', OWN_TOO: 'own-secret', '/etc/app.conf': 'content' });
    expect(await valuesOf(id)).toEqual({ ...values, SELF: `app-z${shortId(id)}` });
    const records = await recordsOf(admin, `/application/${id}/environmentVariable`, 'APPLICATION');
    expect(records.PLAIN).toMatchObject({ variable_type: 'VALUE', description: 'kept' });
    expect(records.PLAIN_TOO).toMatchObject({ variable_type: 'ALIAS', aliased_variable: { id: records.PLAIN.id } });
    expect(records.LEVEL).toMatchObject({ variable_type: 'OVERRIDE', overridden_variable: { id: shared.id } });
    expect(records.SELF).toMatchObject({ variable_type: 'ALIAS', aliased_variable: { key: keyOf(id) } });
    expect(records.SIBLING.aliased_variable.key).toBe(keyOf(sibling.id));
    const secrets = await recordsOf(admin, `/application/${id}/secret`, 'APPLICATION');
    expect(secrets.TOKEN_TOO).toMatchObject({ variable_type: 'ALIAS', aliased_secret: { id: token.id } });
    expect(secrets.OWN_TOO.aliased_secret.id).toBe(secrets.OWN.id);

    ok(await admin.put(`/application/${id}/secret/${secrets.OWN.id}`, { key: 'OWN', value: 'changed' }), 200);
    expect(await valuesOf(source.id)).toEqual(values);
    expect(await valuesOf(id)).toMatchObject({ OWN: 'changed', OWN_TOO: 'changed' });
  });

  test('elsewhere has plain values instead of what cannot be seen there', async () => {
    const admin = await app.organization();
    const [project, elsewhere] = [await makeProject(admin), await makeProject(admin)];
    const environment = await makeEnvironment(admin, project);
    const target = await makeEnvironment(admin, elsewhere);
    const source = await makeApplication(admin, environment, 'web');
    const sibling = await makeApplication(admin, environment, 'api');
    const path = `/application/${source.id}`;
    const level = ok(
      await admin.post(`/project/${project}/environmentVariable`, {
        key: 'LEVEL',
        value: 'high',
        mount_path: '/etc/level',
      }),
      201,
    );
    const token = ok(
      await admin.post(`/environment/${environment}/secret`, { key: 'TOKEN', value: 'shared-secret' }),
      201,
    );
    ok(await admin.post(`${path}/environmentVariable/${level.id}/override`, { value: 'low' }), 201);
    ok(await admin.post(`${path}/environmentVariable/${level.id}/alias`, { key: 'LEVEL_TOO' }), 201);
    ok(await admin.post(`${path}/secret/${token.id}/alias`, { key: 'TOKEN_TOO' }), 201);
    const builtIns = await recordsOf(admin, `${path}/environmentVariable`, 'BUILT_IN');
    const host = `QUARTERDECK_APPLICATION_Z${shortId(sibling.id).toUpperCase()}_HOST_INTERNAL`;
    ok(await admin.post(`${path}/environmentVariable/${builtIns[host].id}/alias`, { key: 'SIBLING' }), 201);
    ok(
      await admin.post(`${path}/environmentVariable/${builtIns.QUARTERDECK_PROJECT_ID.id}/alias`, { key: 'PROJECT' }),
      201,
    );

    const { id } = ok(await admin.post(`${path}/clone`, { name: 'web', environment_id: target }), 201);
    const records = await recordsOf(admin, `/application/${id}/environmentVariable`, 'APPLICATION');
    expect(records.LEVEL).toMatchObject({ variable_type: 'FILE', value: 'low', mount_path: '/etc/level' });
    expect(records.LEVEL_TOO).toMatchObject({ variable_type: 'FILE', value: 'high', aliased_variable: null });
    expect(records.SIBLING).toMatchObject({ variable_type: 'VALUE', value: `app-z${shortId(sibling.id)}` });
    expect(records.PROJECT).toMatchObject({ variable_type: 'ALIAS', aliased_variable: { value: elsewhere } });
    const secrets = await recordsOf(admin, `/application/${id}/secret`, 'APPLICATION');
    expect(secrets.TOKEN_TOO).toMatchObject({ variable_type: 'VALUE', aliased_secret: null });
    await app.db.deleteFrom('variable').where('id', 'in', [level.id, token.id]).execute();
    expect((await rowOf(id)).environment_id).toBe(target);
    const own = ok(await admin.get(`/application/${id}/secret`), 200).results;
    expect(own.map((one: any) => one.key)).toContain('TOKEN_TOO');
    const stage = await app.db
      .selectFrom('deployment_stage')
      .select(['name', 'environment_id'])
      .where('id', '=', (await rowOf(id)).stage_id)
      .executeTakeFirstOrThrow();
    expect(stage).toEqual({ name: 'APPLICATION DEFAULT', environment_id: target });
  });

  test('is refused under a taken name, into a foreign environment, of what is being deleted, and leaves nothing then', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const environment = await makeEnvironment(admin, await makeProject(admin));
    const foreign = await makeEnvironment(stranger, await makeProject(stranger));
    const { id } = await makeApplication(admin, environment, 'web');
    ok(await admin.post(`/application/${id}/environmentVariable`, { key: 'A', value: 'a' }), 201);
    const url = `/application/${id}/clone`;
    expect((await admin.post(url, { name: 'WEB', environment_id: environment })).status).toBe(409);
    for (const environment_id of [foreign, newId()])
      expect(await admin.post(url, { name: 'copy', environment_id })).toMatchObject({
        status: 400,
        body: { errors: [{ field: 'environment_id' }] },
      });
    expect((await admin.post(url, { name: 'copy' })).body.errors).toEqual([
      { field: 'environment_id', message: 'is required' },
    ]);
    expect((await stranger.post(url, { name: 'copy', environment_id: foreign })).status).toBe(404);
    const deployer = await admin.withScope('DEPLOY');
    expect((await deployer.post(url, { name: 'copy', environment_id: environment })).status).toBe(403);
    await app.db.updateTable('service').set({ deleting: true }).where('id', '=', id).execute();
    expect((await admin.post(url, { name: 'copy', environment_id: environment })).status).toBe(409);
    expect(ok(await admin.get(`/environment/${environment}/application`), 200).results).toHaveLength(1);
  });

  test('is refused from and into the preview of a fork, whatever asks for the copy', async () => {
    const admin = await app.organization();
    const project = await makeProject(admin);
    const [normal, fork] = [await makeEnvironment(admin, project), await makeEnvironment(admin, project)];
    await markAsFork(app.db, fork);
    const placeOf = async (id: string) => placeIn((await findEnvironmentById(app.db, [admin.organizationId], id))!);
    const [one, other] = [await placeOf(normal), await placeOf(fork)];
    const copy = { services: [], whole: true };
    const refusal = 'nothing is cloned from it or into it';
    for (const ends of [
      { from: one, to: other },
      { from: other, to: one },
      { from: other, to: other },
    ])
      await expect(copyServices(app.context, () => undefined, { ...ends, ...copy })).rejects.toThrow(refusal);
    await expect(
      copyServices(app.context, () => undefined, { from: other, to: other, ...copy, isNewFork: true }),
    ).rejects.toThrow(refusal);
    await copyServices(app.context, () => undefined, { from: one, to: other, ...copy, isNewFork: true });
  });
});
