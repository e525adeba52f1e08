import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const HOURS = {
  timezone: 'Europe/Paris',
  start_time: '1970-01-01T08:00:00.000Z',
  stop_time: '1970-01-01T19:00:00.000Z',
  weekdays: ['MONDAY', 'FRIDAY'],
};

async function makeProject(admin: Actor) {
  const { id } = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const [cluster] = ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200).results;
  const body = (more: object = {}) => ({
    name: 'rule',
    mode: 'DEVELOPMENT',
    cluster_id: cluster.id as string,
    ...HOURS,
    wildcard: 'dev-*',
    ...more,
  });
  const url = `/project/${id}/deploymentRule`;
  const makeRule = async (more: object = {}) => ok(await admin.post(url, body(more)), 201);
  const makeEnvironment = async (name: string, more: object = {}) =>
    ok(await admin.post(`/project/${id}/environment`, { name, ...more }), 201);
  return { projectId: id as string, cluster, url, body, makeRule, makeEnvironment };
}

const ruleOf = async (admin: Actor, environmentId: string) =>
  ok(await admin.get(`/environment/${environmentId}/deploymentRule`), 200);
const fieldsOf = (body: { errors: { field: string }[] }) => body.errors.map(({ field }) => field);

describe('a rule of a project', () => {
  test('is made, listed, read, edited and deleted', async () => {
    const admin = await app.organization();
    const { url, body, cluster } = await makeProject(admin);
    const made = ok(await admin.post(url, body({ name: ' nights ', description: 'd', auto_stop: true })), 201);
    expect(made).toMatchObject({ ...body(), name: 'nights', description: 'd', auto_stop: true, priority_index: 0 });
    expect(ok(await admin.get(`${url}/${made.id}`), 200)).toEqual(made);
    expect(ok(await admin.get(url), 200).results).toEqual([made]);
    const edited = ok(await admin.put(`${url}/${made.id}`, body({ mode: 'STAGING', weekdays: ['SUNDAY'] })), 200);
    expect(edited).toMatchObject({ mode: 'STAGING', weekdays: ['SUNDAY'], auto_stop: true, description: 'd' });
    expect(edited.cluster_id).toBe(cluster.id);
    ok(await admin.delete(`${url}/${made.id}`), 204);
    ok(await admin.get(`${url}/${made.id}`), 404);
    const events = await app.db
      .selectFrom('audit_event')
      .select('event_type')
      .where('target_id', '=', made.id)
      .orderBy('id')
      .execute();
    expect(events.map((event) => event.event_type)).toEqual(['CREATE', 'UPDATE', 'DELETE']);
  });

  test.each([
    ['timezone', { timezone: 'Europe/Atlantis' }],
    ['timezone', { timezone: '+02:00' }],
    ['weekdays', { auto_stop: true, weekdays: [] }],
    ['weekdays[0]', { weekdays: ['MONTAG'] }],
    ['start_time', { start_time: '08:00' }],
    ['stop_time', { stop_time: '2026-13-01T08:00:00Z' }],
    ['mode', { mode: 'TEST' }],
    ['cluster_id', { cluster_id: newId() }],
    ['wildcard', { wildcard: 'a'.repeat(256) }],
  ])('is refused for its %s', async (field, wrong) => {
    const admin = await app.organization();
    const { url, body } = await makeProject(admin);
    expect(fieldsOf(ok(await admin.post(url, body(wrong)), 400))).toEqual([field]);
  });

  test('takes times as their digits say, and names of zones in their usual spelling', async () => {
    const admin = await app.organization();
    const { makeRule } = await makeProject(admin);
    const rule = await makeRule({
      timezone: 'america/new_york',
      start_time: '2026-07-01T08:30:00+02:00',
      stop_time: '1970-01-01T19:00:00.5-08:00',
      weekdays: ['SUNDAY', 'MONDAY', 'SUNDAY'],
    });
    expect(rule).toMatchObject({
      timezone: 'America/New_York',
      start_time: '2026-07-01T08:30:00.000Z',
      stop_time: '1970-01-01T19:00:00.500Z',
      weekdays: ['MONDAY', 'SUNDAY'],
    });
  });

  test('keeps its place among the others, which is given anew by an order', async () => {
    const admin = await app.organization();
    const { url, makeRule } = await makeProject(admin);
    const [a, b, c] = [await makeRule({ name: 'a' }), await makeRule({ name: 'b' }), await makeRule({ name: 'c' })];
    const order = (ids: string[]) => admin.put(`${url}/order`, { project_deployment_rule_ids_in_order: ids });
    const names = async () => ok(await admin.get(url), 200).results.map((rule: { name: string }) => rule.name);
    expect(
      ok(await order([c.id, a.id, b.id]), 200).results.map((rule: any) => [rule.name, rule.priority_index]),
    ).toEqual([
      ['c', 0],
      ['a', 1],
      ['b', 2],
    ]);
    // Those that are left out come after, as they were.
    ok(await order([b.id]), 200);
    expect(await names()).toEqual(['b', 'c', 'a']);
    ok(await admin.put(`${url}/order`, {}), 200);
    expect(await names()).toEqual(['b', 'c', 'a']);
    const field = 'project_deployment_rule_ids_in_order[1]';
    expect(fieldsOf(ok(await order([a.id, a.id]), 400))).toEqual([field]);
    expect(fieldsOf(ok(await order([a.id, newId()]), 400))).toEqual([field]);
    ok(await admin.delete(`${url}/${b.id}`), 204);
    expect((await makeRule({ name: 'd' })).priority_index).toBeGreaterThan(2);
    expect(await names()).toEqual(['c', 'a', 'd']);
  });

  test('is made by several at the same time without a clash', async () => {
    const admin = await app.organization();
    const { url, body } = await makeProject(admin);
    const answers = await Promise.all([1, 2, 3, 4].map((at) => admin.post(url, body({ name: `r${at}` }))));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(answers.map((answer) => answer.body.priority_index).sort()).toEqual([0, 1, 2, 3]);
  });

  test('is not there for another organization or project, and takes WRITE to change', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const [{ url, body, makeRule }, elsewhere, foreign] = [
      await makeProject(admin),
      await makeProject(admin),
      await makeProject(other),
    ];
    const { id } = await makeRule();
    for (const path of [`${url}/${id}`, `${foreign.url}/${id}`]) {
      ok(await other.get(path), 404);
      ok(await other.put(path, foreign.body()), 404);
      ok(await other.delete(path), 404);
    }
    ok(await admin.get(`${elsewhere.url}/${id}`), 404);
    expect(fieldsOf(ok(await admin.post(url, body({ cluster_id: foreign.cluster.id })), 400))).toEqual(['cluster_id']);
    const [reader, deployer] = [await admin.withScope('READ'), await admin.withScope('DEPLOY')];
    ok(await reader.get(`${url}/${id}`), 200);
    ok(await deployer.post(url, body()), 403);
    ok(await deployer.put(`${url}/${id}`, body()), 403);
    ok(await deployer.put(`${url}/order`, {}), 403);
    ok(await deployer.delete(`${url}/${id}`), 403);
  });
});

describe('a new environment', () => {
  test('gets the first rule whose wildcard matches its name: hours, mode and cluster', async () => {
    const admin = await app.organization();
    const { makeRule, makeEnvironment, cluster, url } = await makeProject(admin);
    const spare = ok(
      await admin.post(`/organization/${admin.organizationId}/cluster`, {
        name: 'spare',
        region: 'here',
        cloud_provider: 'ON_PREMISE',
        runtime: 'fake',
      }),
      201,
    );
    await makeRule({ wildcard: '', mode: 'PRODUCTION' });
    const dev = await makeRule({ wildcard: 'DEV-*', mode: 'STAGING', cluster_id: spare.id, auto_stop: true });
    const all = await makeRule({ wildcard: '*', mode: 'PREVIEW', weekdays: ['SUNDAY'] });
    const one = await makeEnvironment('dev-1');
    expect(one).toMatchObject({ mode: 'STAGING', cluster_id: spare.id });
    expect(await ruleOf(admin, one.id)).toMatchObject({ ...HOURS, auto_stop: true, auto_preview: false });
    expect(await makeEnvironment('other')).toMatchObject({ mode: 'PREVIEW', cluster_id: cluster.id });
    // What the body says wins.
    const said = await makeEnvironment('dev-2', { mode: 'DEVELOPMENT', cluster: cluster.id });
    expect(said).toMatchObject({ mode: 'DEVELOPMENT', cluster_id: cluster.id });
    expect((await ruleOf(admin, said.id)).auto_stop).toBe(true);
    ok(await admin.put(`${url}/order`, { project_deployment_rule_ids_in_order: [all.id] }), 200);
    expect((await makeEnvironment('dev-3')).mode).toBe('PREVIEW');
    // A rule that is edited or deleted later leaves it as it is.
    ok(await admin.delete(`${url}/${dev.id}`), 204);
    expect((await ruleOf(admin, one.id)).auto_stop).toBe(true);
  });

  test('without a matching rule runs all the time', async () => {
    const admin = await app.organization();
    const { makeEnvironment } = await makeProject(admin);
    const environment = await makeEnvironment('e');
    expect(environment.mode).toBe('DEVELOPMENT');
    expect(await ruleOf(admin, environment.id)).toMatchObject({
      auto_stop: false,
      auto_preview: false,
      on_demand_preview: false,
      timezone: 'UTC',
    });
  });

  test('takes the right to the mode that the rule gives it', async () => {
    const admin = await app.organization();
    const { projectId, makeRule } = await makeProject(admin);
    await makeRule({ wildcard: 'prod*', mode: 'PRODUCTION' });
    const organization = `/organization/${admin.organizationId}`;
    const role = ok(await admin.post(`${organization}/customRole`, { name: 'developers' }), 201);
    const permissions = ['DEVELOPMENT', 'PREVIEW', 'STAGING', 'PRODUCTION'].map((environment_type) => ({
      environment_type,
      permission: environment_type === 'DEVELOPMENT' ? 'MANAGER' : 'VIEWER',
    }));
    ok(
      await admin.put(`${organization}/customRole/${role.id}`, {
        name: 'developers',
        project_permissions: [{ project_id: projectId, is_admin: false, permissions }],
        cluster_permissions: [],
      }),
      200,
    );
    const { token } = ok(await admin.post(`${organization}/apiToken`, { name: 't', role_id: role.id }), 201);
    const make = (name: string) =>
      app.anonymous('POST', `/project/${projectId}/environment`, { name }, { authorization: `Token ${token}` });
    ok(await make('prod-1'), 403);
    ok(await make('dev-1'), 201);
  });

  test('that is a clone has the rule of its source, or the matching one of its project where that is asked for', async () => {
    const admin = await app.organization();
    const { makeRule, makeEnvironment } = await makeProject(admin);
    const source = await makeEnvironment('source');
    const own = await ruleOf(admin, source.id);
    ok(
      await admin.put(`/environment/${source.id}/deploymentRule/${own.id}`, {
        ...HOURS,
        auto_preview: true,
        weekdays: ['TUESDAY'],
      }),
      200,
    );
    await makeRule({ wildcard: 'copy-*', mode: 'STAGING', auto_stop: true });
    const clone = async (name: string, more: object = {}) =>
      ok(await admin.post(`/environment/${source.id}/clone`, { name, ...more }), 201);
    const like = await clone('copy-1');
    expect(like.mode).toBe('DEVELOPMENT');
    expect(await ruleOf(admin, like.id)).toMatchObject({ auto_stop: false, auto_preview: true, weekdays: ['TUESDAY'] });
    const ruled = await clone('copy-2', { apply_deployment_rule: true });
    expect(ruled.mode).toBe('STAGING');
    expect(await ruleOf(admin, ruled.id)).toMatchObject({ auto_stop: true, weekdays: HOURS.weekdays });
    const unmatched = await clone('third', { apply_deployment_rule: true });
    expect(unmatched.mode).toBe('DEVELOPMENT');
    expect((await ruleOf(admin, unmatched.id)).auto_stop).toBe(false);
  });
});

describe('the rule of an environment', () => {
  test('is edited, for its own environment only', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const { makeEnvironment } = await makeProject(admin);
    const [first, second] = [await makeEnvironment('a'), await makeEnvironment('b')];
    const rule = await ruleOf(admin, first.id);
    const url = `/environment/${first.id}/deploymentRule/${rule.id}`;
    const edited = ok(await admin.put(url, { ...HOURS, auto_stop: true, on_demand_preview: true }), 200);
    expect(edited).toMatchObject({
      id: rule.id,
      ...HOURS,
      auto_stop: true,
      on_demand_preview: true,
      auto_preview: false,
    });
    expect(await ruleOf(admin, first.id)).toEqual(edited);
    expect(fieldsOf(ok(await admin.put(url, { ...HOURS, timezone: 'CEST5' }), 400))).toEqual(['timezone']);
    ok(await admin.put(`/environment/${second.id}/deploymentRule/${rule.id}`, HOURS), 404);
    ok(await other.put(url, HOURS), 404);
    ok(await other.get(`/environment/${first.id}/deploymentRule`), 404);
    ok(await (await admin.withScope('DEPLOY')).put(url, HOURS), 403);
  });

  test('goes with its environment, as rules go with their project and their cluster', async () => {
    const admin = await app.organization();
    const { projectId, makeRule, makeEnvironment, url } = await makeProject(admin);
    const organization = `/organization/${admin.organizationId}`;
    const spare = ok(
      await admin.post(`${organization}/cluster`, {
        name: 'spare',
        region: 'here',
        cloud_provider: 'ON_PREMISE',
        runtime: 'fake',
      }),
      201,
    );
    await makeRule({ cluster_id: spare.id });
    ok(await admin.delete(`${organization}/cluster/${spare.id}`), 204);
    await makeRule({ wildcard: 'x' });
    const environment = await makeEnvironment('a');
    ok(await admin.delete(`/environment/${environment.id}`), 204);
    ok(await admin.get(`/environment/${environment.id}/deploymentRule`), 404);
    expect(ok(await admin.get(url), 200).results.length).toBeGreaterThan(0);
    ok(await admin.delete(`/project/${projectId}`), 204);
    const left = await app.db
      .selectFrom('project_deployment_rule')
      .select('id')
      .where('organization_id', '=', admin.organizationId)
      .execute();
    expect(left).toEqual([]);
  });
});
