import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { SERVICE_KINDS } from '#services/service/holder.ts';
import { checkBody, serialize } from '#platform/http/compile.ts';
import {
  advancedSettingsRequest,
  advancedSettingsSchema,
} from '#services/capabilities/service/advanced-settings/schema.ts';
import {
  ADVANCED_SETTINGS,
  advancedSettingsOf,
  settingsOf,
} from '#services/capabilities/service/advanced-settings/settings.ts';
import type { Kind } from '#services/kind.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

async function makeApplication(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
  const body = { name: 'web', git_repository: { url: 'https://github.com/acme/shop.git' } };
  return ok(await admin.post(`/environment/${environment.id}/application`, body), 201);
}

const rowOf = (id: string) => app.db.selectFrom('service').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

describe('the table of advanced settings', () => {
  test('holds defaults that its own schemas accept and answer unchanged, for each kind', () => {
    for (const kind of SERVICE_KINDS) {
      const descriptor = { kind, tag: kind } as Kind;
      const defaults = advancedSettingsOf({ kind, advanced_settings: {} });
      checkBody(advancedSettingsRequest(descriptor), structuredClone(defaults));
      expect(JSON.parse(serialize(advancedSettingsSchema(descriptor), defaults))).toEqual(defaults);
    }
    for (const key of Object.keys(ADVANCED_SETTINGS))
      expect(
        SERVICE_KINDS.filter((kind) => settingsOf(kind).some(([one]) => one === key)),
        key,
      ).not.toEqual([]);
  });
});

describe('advanced settings', () => {
  test('of a new service are the defaults, which are answered without a service too', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const defaults = ok(await admin.get('/defaultApplicationAdvancedSettings'), 200);
    expect(defaults).toMatchObject({
      'build.timeout_max_sec': 1800,
      'deployment.termination_grace_period_seconds': 60,
      'hpa.memory.average_utilization_percent': null,
      'deployment.affinity.node.required': {},
      'deployment.lifecycle.pre_stop_exec_command': [],
    });
    expect(ok(await admin.get(`/application/${id}/advancedSettings`), 200)).toEqual(defaults);
    expect((await app.anonymous('GET', '/defaultApplicationAdvancedSettings')).status).toBe(401);
  });

  test('are replaced: what is given holds, what is absent or null falls back, and only what differs is stored', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const url = `/application/${id}/advancedSettings`;
    const defaults = ok(await admin.get(url), 200);
    const first = {
      'build.timeout_max_sec': 60,
      'deployment.affinity.node.required': { disk: 'ssd' },
      'deployment.antiaffinity.pod': 'Preferred',
    };
    expect(ok(await admin.put(url, first), 200)).toEqual({ ...defaults, ...first });
    expect((await rowOf(id)).advanced_settings).toEqual({
      'build.timeout_max_sec': 60,
      'deployment.affinity.node.required': { disk: 'ssd' },
    });
    const second = { 'hpa.memory.average_utilization_percent': 80, 'build.timeout_max_sec': null };
    expect(ok(await admin.put(url, second), 200)).toEqual({
      ...defaults,
      'hpa.memory.average_utilization_percent': 80,
    });
    expect(ok(await admin.put(url, defaults), 200)).toEqual(defaults);
    const row = await rowOf(id);
    expect([row.advanced_settings, row.version]).toEqual([{}, 4]);
    const events = await app.db
      .selectFrom('audit_event')
      .selectAll()
      .where('target_id', '=', id)
      .where('sub_target_type', '=', 'ADVANCED_SETTINGS')
      .orderBy('id')
      .execute();
    expect(events.map((event) => [event.event_type, event.change['build.timeout_max_sec']])).toEqual([
      ['UPDATE', 60],
      ['UPDATE', 1800],
      ['UPDATE', 1800],
    ]);
  });

  test.each([
    ['build.timeout_max_sec', 'long'],
    ['build.timeout_max_sec', 0],
    ['build.timeout_max_sec', 1.5],
    ['deployment.antiaffinity.pod', 'Required'],
    ['deployment.lifecycle.pre_stop_exec_command', 'sleep 5'],
    ['deployment.affinity.node.required', { disk: 7 }],
    ['network.ingress.proxy_buffering', 'maybe'],
    ['network.ingress.whitelist_source_range', '10.0.0.0/8, nonsense'],
    ['network.ingress.extra_headers', '{"X-A": 1}'],
    ['network.ingress.extra_headers', '{broken'],
    ['network.ingress.basic_auth_env_var', 'a b'],
    ['network.gateway_api.retry.http_status_codes', '503,9000'],
    ['network.gateway_api.retry.per_try_timeout_seconds', 0],
    ['build.timeout', 60],
    ['cronjob.concurrency_policy', 'Allow'],
  ])('with %s = %j are refused, naming the key, and nothing is changed', async (key, value) => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const answer = await admin.put(`/application/${id}/advancedSettings`, { 'build.ram_max_in_gib': 4, [key]: value });
    expect(answer.status).toBe(400);
    expect(answer.body.errors[0].field.startsWith(key)).toBe(true);
    expect((await rowOf(id)).advanced_settings).toEqual({});
  });

  test('are frozen whole into a deployment: a later default changes nothing of it', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    ok(await admin.put(`/application/${id}/advancedSettings`, { 'build.timeout_max_sec': 60 }), 200);
    ok(await admin.post(`/application/${id}/deploy`), 200);
    const { snapshot } = await app.db
      .selectFrom('deployment')
      .select('snapshot')
      .where('organization_id', '=', admin.organizationId)
      .executeTakeFirstOrThrow();
    expect(snapshot.services[0].advancedSettings).toEqual(
      ok(await admin.get(`/application/${id}/advancedSettings`), 200),
    );
  });

  test('are edited by writers of the same organization only, and on what they have read', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { id } = await makeApplication(admin);
    const url = `/application/${id}/advancedSettings`;
    expect((await stranger.put(url, {})).status).toBe(404);
    expect((await (await admin.withScope('DEPLOY')).put(url, {})).status).toBe(403);
    const { etag } = (await admin.get(url)).headers as { etag: string };
    expect((await admin.put(url, { 'build.timeout_max_sec': 60 }, { 'if-match': etag })).status).toBe(200);
    expect((await admin.put(url, {}, { 'if-match': etag })).status).toBe(412);
    await app.db.updateTable('service').set({ deleting: true }).where('id', '=', id).execute();
    expect((await admin.put(url, {})).status).toBe(409);
  });
});

describe('network settings', () => {
  test('are the sticky sessions of the advanced settings, and leave the others alone', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const network = `/application/${id}/network`;
    expect(ok(await admin.get(network), 200)).toEqual({ sticky_session: false });
    ok(await admin.put(`/application/${id}/advancedSettings`, { 'build.timeout_max_sec': 60 }), 200);
    expect(ok(await admin.put(network, { sticky_session: true }), 200)).toEqual({ sticky_session: true });
    expect(ok(await admin.get(`/application/${id}/advancedSettings`), 200)).toMatchObject({
      'network.ingress.enable_sticky_session': true,
      'build.timeout_max_sec': 60,
    });
    expect(ok(await admin.put(network, {}), 200)).toEqual({ sticky_session: false });
    expect((await admin.put(network, { sticky_session: 'yes' })).status).toBe(400);
    expect((await (await admin.withScope('READ')).put(network, {})).status).toBe(403);
  });
});
