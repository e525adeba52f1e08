import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { IN_CLUSTER, useArgoCd } from '#test/harness/argo-cd.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const argo = useArgoCd({ beforeAll, afterAll });

beforeEach(() => {
  argo.apps.clear();
  argo.instead = undefined;
});

const clusterOf = async (admin: Actor): Promise<string> =>
  ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200).results[0].id;
const configOf = async (admin: Actor) => `/cluster/${await clusterOf(admin)}/argoCdConfig`;
const mappingOf = (admin: Actor) => `/organization/${admin.organizationId}/argoCdDestinationClusterMapping`;
const body = () => ({ argocd_url: argo.url, argocd_token: argo.token });

const tokenIn = async (clusterId: string) => {
  const row = await app.db
    .selectFrom('argo_cd')
    .selectAll()
    .where('cluster_id', '=', clusterId)
    .executeTakeFirstOrThrow();
  expect(row.token.includes(argo.token)).toBe(false);
  return app.platform.vault.open(app.db, row.organization_id, `argo_cd/${clusterId}/token`, row.token);
};

describe("a cluster's Argo CD", () => {
  test('is kept with its token encrypted and masked, and was asked when it is answered', async () => {
    const admin = await app.organization();
    const [clusterId, url] = [await clusterOf(admin), await configOf(admin)];
    ok(await admin.get(url), 404);
    const saved = ok(await admin.post(url, body()), 200);
    expect(saved).toMatchObject({
      cluster_id: clusterId,
      argocd_url: argo.url,
      argocd_token: '********',
      status: 'connected',
      last_checked_at: expect.stringMatching(/Z$/),
    });
    expect(ok(await admin.get(url), 200)).toEqual(saved);
    expect(await tokenIn(clusterId)).toBe(argo.token);
    const events = await app.db
      .selectFrom('audit_event')
      .selectAll()
      .where('organization_id', '=', admin.organizationId)
      .where('sub_target_type', '=', 'ARGOCD_CONFIGURATION')
      .execute();
    expect(events.map((event) => event.event_type)).toEqual(['CREATE']);
    expect(JSON.stringify([saved, events])).not.toContain(argo.token);
  });

  test('keeps its token when the mask is sent back, but not for another address', async () => {
    const admin = await app.organization();
    const [clusterId, url] = [await clusterOf(admin), await configOf(admin)];
    const mask = { argocd_url: argo.url, argocd_token: '********' };
    expect(ok(await admin.post(url, mask), 400).errors[0].field).toBe('argocd_token');
    const saved = ok(await admin.post(url, body()), 200);
    expect(ok(await admin.post(url, mask), 200)).toMatchObject({ id: saved.id, status: 'connected' });
    const slash = { ...mask, argocd_url: `${argo.url}/` };
    expect(ok(await admin.post(url, slash), 200)).toMatchObject({ argocd_url: slash.argocd_url, status: 'connected' });
    expect(await tokenIn(clusterId)).toBe(argo.token);
    for (const path of ['', '/check'])
      expect(
        ok(await admin.post(url + path, { ...mask, argocd_url: 'https://attacker.example' }), 400).errors[0].field,
      ).toBe('argocd_token');
  });

  test('is refused with an address that is none, is private, or carries credentials, and with a token that is no header', async () => {
    const admin = await app.organization();
    const url = await configOf(admin);
    for (const argocd_url of ['ftp://argo.example', 'https://u:p@argo.example', 'http://10.0.0.1', 'x', 'https://a/?b'])
      expect(ok(await admin.post(url, { ...body(), argocd_url }), 400).errors[0].field).toBe('argocd_url');
    for (const argocd_token of ['', 'a b', 'a\r\nX-Evil: 1', 'ä'])
      expect(ok(await admin.post(url, { ...body(), argocd_token }), 400).errors[0].field).toBe('argocd_token');
  });

  test('is forgotten once, by administrators only, and is not there for another organization', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const url = await configOf(admin);
    ok(await admin.post(url, body()), 200);
    const writer = await admin.withScope('WRITE');
    ok(await writer.get(url), 200);
    ok(await writer.post(url, body()), 403);
    ok(await writer.post(`${url}/check`, body()), 403);
    ok(await writer.delete(url), 403);
    for (const answer of [
      await other.get(url),
      await other.post(url, body()),
      await other.post(`${url}/check`, body()),
      await other.delete(url),
    ])
      ok(answer, 404);
    ok(await admin.delete(url), 204);
    ok(await admin.delete(url), 404);
    ok(await admin.get(url), 404);
  });

  test('is one, however many save it at once', async () => {
    const admin = await app.organization();
    const url = await configOf(admin);
    const saved = await Promise.all(Array.from({ length: 5 }, () => admin.post(url, body())));
    expect(new Set(saved.map((answer) => ok(answer, 200).id)).size).toBe(1);
  });
});

describe('a check', () => {
  const check = async (admin: Actor, change: object = {}) =>
    ok(await admin.post(`${await configOf(admin)}/check`, { ...body(), ...change }), 200);

  test('counts the apps that the token sees, and keeps nothing', async () => {
    const admin = await app.organization();
    argo.put({ name: 'one' });
    argo.put({ name: 'two' });
    expect(await check(admin)).toEqual({ status: 'connected', app_count: 2 });
    ok(await admin.get(await configOf(admin)), 404);
  });

  test('asks for a few fields of each app only', async () => {
    const admin = await app.organization();
    argo.put({ name: 'one' });
    argo.requests.length = 0;
    await check(admin);
    const list = new URL(
      argo.requests.find((path) => path.startsWith('/api/v1/applications?'))!,
      argo.url,
    );
    const fields = list.searchParams.get('fields')!.split(',');
    expect(fields).toContain('items.status.health.status');
    expect(fields.some((field) => field.includes('history') || field.includes('resources'))).toBe(false);
  });

  test('tells a wrong token, a token that sees nothing, and an Argo CD that is not there apart', async () => {
    const admin = await app.organization();
    expect(await check(admin, { argocd_token: 'wrong' })).toMatchObject({
      status: 'error',
      reason: 'authentication_failed',
    });
    argo.put({ name: 'one' });
    argo.accounts.set('blind', { username: 'blind', projects: [] });
    expect(await check(admin, { argocd_token: 'blind' })).toMatchObject({
      status: 'error',
      reason: 'insufficient_permissions',
    });
    for (const argocd_url of ['http://127.0.0.1:1', 'https://argo-cd.invalid', `${argo.url}/elsewhere`])
      expect(await check(admin, { argocd_url })).toMatchObject({ status: 'error', reason: 'unreachable' });
  });

  test('takes no other server for an Argo CD', async () => {
    const admin = await app.organization();
    const answers: [number, Record<string, string>, string][] = [
      [200, { 'content-type': 'text/html' }, '<html>'],
      [200, {}, '[]'],
      [200, {}, 'null'],
      [307, { location: 'https://argo.example/' }, ''],
      [502, {}, 'bad gateway'],
    ];
    for (const [status, headers, text] of answers) {
      argo.instead = (_request, response) => void response.writeHead(status, headers).end(text);
      expect(await check(admin)).toMatchObject({ status: 'error', reason: 'unreachable', message: expect.any(String) });
    }
  });

  test('of the configuration in force is kept with it', async () => {
    const admin = await app.organization();
    const url = await configOf(admin);
    ok(await admin.post(url, body()), 200);
    await argo.stop();
    try {
      await check(admin, { argocd_token: '********' });
      expect(ok(await admin.get(url), 200)).toMatchObject({ status: 'error', reason: 'unreachable' });
      expect(ok(await admin.post(url, body()), 200)).toMatchObject({ status: 'error', reason: 'unreachable' });
    } finally {
      await argo.start();
    }
  });
});

describe('the mapping of destinations', () => {
  const mapped = async (admin: Actor) => ({
    agent_cluster_id: await clusterOf(admin),
    argocd_cluster_url: IN_CLUSTER,
    cluster_id: await clusterOf(admin),
  });

  test('is listed with its cluster as soon as it is made, and is gone when it is deleted', async () => {
    const admin = await app.organization();
    const [url, mapping] = [mappingOf(admin), await mapped(admin)];
    expect(ok(await admin.get(url), 200)).toEqual({ results: [] });
    expect(ok(await admin.post(url, mapping), 400).errors[0].field).toBe('agent_cluster_id');
    const config = ok(await admin.post(await configOf(admin), body()), 200);
    expect(ok(await admin.post(url, { ...mapping, argocd_cluster_url: `${IN_CLUSTER}/` }), 200)).toEqual(mapping);
    const [instance] = ok(await admin.get(url), 200).results;
    expect(instance).toMatchObject({
      agent_cluster_id: mapping.cluster_id,
      credentials_id: config.id,
      argocd_url: argo.url,
      status: 'connected',
      linked_clusters: [
        {
          argocd_cluster_url: IN_CLUSTER,
          qovery_cluster_id: mapping.cluster_id,
          qovery_cluster_cloud_provider: 'ON_PREMISE',
          qovery_cluster_type: 'SELF_MANAGED',
          applications_count: 0,
        },
      ],
      unlinked_clusters: [],
    });
    const query = `?agentClusterId=${mapping.agent_cluster_id}&argocdClusterUrl=${encodeURIComponent(IN_CLUSTER)}`;
    ok(await admin.delete(url + query), 204);
    ok(await admin.delete(url + query), 404);
    expect(ok(await admin.get(url), 200).results[0].linked_clusters).toEqual([]);
  });

  test('names clusters of the organization only, and is changed by administrators only', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const [url, mapping] = [mappingOf(admin), await mapped(admin)];
    ok(await admin.post(await configOf(admin), body()), 200);
    const foreign = await clusterOf(other);
    for (const id of [foreign, newId()])
      for (const field of ['agent_cluster_id', 'cluster_id'])
        expect(ok(await admin.post(url, { ...mapping, [field]: id }), 400).errors[0].field).toBe(field);
    const writer = await admin.withScope('WRITE');
    ok(await writer.get(url), 200);
    ok(await writer.post(url, mapping), 403);
    const query = `agentClusterId=${foreign}&argocdClusterUrl=x`;
    expect(ok(await admin.delete(`${url}?${query}`), 400).errors[0].field).toBe('agentClusterId');
    ok(await writer.delete(`${url}?${query}`), 403);
    ok(await other.post(url, mapping), 404);
    ok(await other.get(url), 404);
  });

  test('goes with the configuration', async () => {
    const admin = await app.organization();
    ok(await admin.post(await configOf(admin), body()), 200);
    ok(await admin.post(mappingOf(admin), await mapped(admin)), 200);
    ok(await admin.delete(await configOf(admin)), 204);
    ok(await admin.post(await configOf(admin), body()), 200);
    expect(ok(await admin.get(mappingOf(admin)), 200).results[0].linked_clusters).toEqual([]);
  });
});
