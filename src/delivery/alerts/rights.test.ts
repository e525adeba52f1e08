import { describe, expect, test } from 'vitest';
import { editOf, ruleBody, useAlerts } from '#delivery/alerts/alerts.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp, type Actor, type Answer } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const { receiver, evaluate } = useAlerts(app);

/** Calls of a token with a custom role, and the token's id. */
async function withRole(admin: Actor, projects: object[], clusters: object[] = []) {
  const of = `/organization/${admin.organizationId}`;
  const body = { name: newId(), cluster_permissions: clusters, project_permissions: projects };
  const role = ok(await admin.post(`${of}/customRole`, body), 201);
  const made = ok(await admin.post(`${of}/apiToken`, { name: newId(), role_id: role.id }), 201);
  const headers = { authorization: `Token ${made.token}` };
  const call = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, body?: unknown): Promise<Answer> =>
    app.anonymous(method, url, body, headers);
  return { call, tokenId: made.id as string };
}

/** An organization with two projects, and the bodies of rules on an application, its environment and its cluster. */
async function organization() {
  const admin = await app.organization();
  const [own, other] = [await makeExample(admin), await makeExample(admin)];
  const { id: receiverId } = await receiver(admin);
  const clusterId: string = own.environment.cluster_id;
  const body = (target_type: string, target_id: string) =>
    ruleBody(admin, clusterId, { target_type, target_id }, [receiverId]);
  return {
    admin,
    own,
    clusterId,
    onService: body('APPLICATION', own.application.id),
    onEnvironment: body('ENVIRONMENT', own.environment.id),
    onOther: body('APPLICATION', other.application.id),
    onCluster: body('CLUSTER', clusterId),
  };
}

describe('a role with rights on one project', () => {
  test('saves and deletes rules of its services and environments, and of no others', async () => {
    const { admin, own, onService, onEnvironment, onOther } = await organization();
    const { call } = await withRole(admin, [{ project_id: own.project.id, is_admin: true }]);
    for (const body of [onService, onEnvironment]) {
      const rule = ok(await call('POST', '/alert-rules', body), 201);
      ok(await call('PUT', `/alert-rules/${rule.id}`, editOf(body)), 200);
      expect((await call('DELETE', `/alert-rules/${rule.id}`)).status).toBe(204);
    }
    expect(ok(await call('POST', '/alert-rules', onOther), 400).errors[0].field).toBe('target.target_id');
    const foreign = ok(await admin.post('/alert-rules', onOther), 201);
    expect((await call('PUT', `/alert-rules/${foreign.id}`, { ...editOf(onOther), enabled: false })).status).toBe(403);
    expect((await call('DELETE', `/alert-rules/${foreign.id}`)).status).toBe(403);
    expect(ok(await admin.get(`/alert-rules/${foreign.id}`), 200).enabled).toBe(true);
  });

  test.each([[[]], [['ADMIN']]])(
    'neither makes nor silences a rule that watches a cluster: %j on it',
    async (permissions) => {
      const { admin, own, clusterId, onCluster } = await organization();
      const clusters = permissions.map((permission) => ({ cluster_id: clusterId, permission }));
      const { call } = await withRole(admin, [{ project_id: own.project.id, is_admin: true }], clusters);
      expect((await call('POST', '/alert-rules', onCluster)).status).toBe(403);
      const rule = ok(await admin.post('/alert-rules', onCluster), 201);
      expect((await call('PUT', `/alert-rules/${rule.id}`, { ...editOf(onCluster), enabled: false })).status).toBe(403);
      expect((await call('DELETE', `/alert-rules/${rule.id}`)).status).toBe(403);
      ok(await call('GET', `/alert-rules/${rule.id}`), 200);
      expect(ok(await admin.get(`/alert-rules/${rule.id}`), 200).enabled).toBe(true);
    },
  );

  test('does not keep a rule of a cluster going that was saved with more rights', async () => {
    const { admin, own, onCluster } = await organization();
    const { tokenId } = await withRole(admin, [{ project_id: own.project.id, is_admin: true }]);
    const rule = ok(await admin.post('/alert-rules', onCluster), 201);
    await sql`update alert_rule set set_with = ${tokenId} where id = ${rule.id}`.execute(app.db);
    await evaluate();
    expect(ok(await admin.get(`/alert-rules/${rule.id}`), 200).problem).toContain('must save it again');
  });
});

test('a rule whose target is deleted is read and removed by those who had the right to it, and by no others', async () => {
  const { admin, own, onService } = await organization();
  const mine = await withRole(admin, [{ project_id: own.project.id, is_admin: true }]);
  const stranger = await withRole(admin, []);
  const rule = ok(await mine.call('POST', '/alert-rules', onService), 201);
  ok(await admin.delete(`/application/${own.application.id}`), 204);
  await sql`delete from service where id = ${own.application.id}`.execute(app.db);
  await evaluate();
  const url = `/alert-rules/${rule.id}`;
  expect(ok(await mine.call('GET', url), 200).problem).toBe('The target of the rule is deleted: delete the rule.');
  expect((await stranger.call('GET', url)).status).toBe(403);
  const listed = async (one: typeof mine) =>
    ok(await one.call('GET', `/organization/${admin.organizationId}/alert-rules`), 200).results.length;
  expect([await listed(mine), await listed(stranger)]).toEqual([1, 0]);
  expect((await stranger.call('DELETE', url)).status).toBe(403);
  expect((await mine.call('DELETE', url)).status).toBe(204);
});
