import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_OUTGOING_ADDRESSES: '192.0.2.10, 2001:db8::10' });

describe('what only a hosted service has', () => {
  test('the addresses from which the installation calls are those of its settings, for anybody', async () => {
    expect(ok(await app.anonymous('GET', '/ips'), 200)).toEqual({ ips: ['192.0.2.10', '2001:db8::10'] });
  });

  test('is refused with the way that is there, and stores nothing', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}`;
    const [cluster] = ok(await admin.get(`${url}/cluster`), 200).results;
    const before = await app.db.selectFrom('audit_event').select('id').execute();
    const connection = {
      connection_name: 'okta',
      default_role: 'viewer',
      enforce_group_sync: true,
      group_mappings: {},
    };
    const binding = { templateKey: 'default', templateVersion: '1' };
    const message = async (answer: Promise<{ status: number; body: any }>, status: number): Promise<string> =>
      ok((await answer) as never, status).message;
    expect(await message(admin.post(`${url}/github/connect`, { installation_id: '1', code: 'c' }), 400)).toContain(
      'gitToken',
    );
    expect(await message(admin.delete(`${url}/github/disconnect`), 404)).toContain('git tokens');
    expect(await message(admin.put(`${url}/enterpriseconnection/okta`, connection), 404)).toContain('OIDC');
    expect(await message(admin.post(`${url}/cluster/${cluster.id}/operator/attach`), 400)).toContain(cluster.name);
    expect(await message(admin.put(`${url}/cluster/${cluster.id}/platformBinding`, binding), 400)).toContain(
      'templateKey',
    );
    expect(await message(admin.post('/account/rewardClaim', {}), 400)).toContain('referral');
    for (const list of ['enterpriseconnection', 'platformTemplate'])
      expect(ok(await admin.get(`${url}/${list}`), 200).results).toEqual([]);
    expect(ok(await admin.get(`${url}/blueprint/catalog`), 200).blueprints).toEqual([]);
    expect(await app.db.selectFrom('audit_event').select('id').execute()).toEqual(before);
  });

  test('the operators of clusters: the Kubernetes clusters that the caller may read, without one', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const url = `/organization/${admin.organizationId}/cluster`;
    const body = { name: newId(), region: 'eu-west-3', cloud_provider: 'AWS', kubernetes: 'SELF_MANAGED' };
    const cluster = ok(await admin.post(url, body), 201);
    const { results } = ok(await admin.get('/admin/operator/clusters'), 200);
    expect(results).toMatchObject([
      { cluster_id: cluster.id, cluster_kind: 'EKS_SELF_MANAGED', attached: false, status: 'NOT_ATTACHED' },
    ]);
    expect(ok(await stranger.get('/admin/operator/clusters'), 200).results).toEqual([]);
    expect(ok(await admin.get(`${url}/${cluster.id}/operator/status`), 200)).toMatchObject({
      cluster_id: cluster.id,
      operator_connected: false,
      status: 'NOT_ATTACHED',
    });
  });

  test('the operators of clusters: without those that a policy denies', async () => {
    const admin = await app.organization();
    const of = `/organization/${admin.organizationId}`;
    const body = { region: 'eu-west-3', cloud_provider: 'AWS', kubernetes: 'SELF_MANAGED' };
    const [shown, denied] = [
      ok(await admin.post(`${of}/cluster`, { ...body, name: newId() }), 201),
      ok(await admin.post(`${of}/cluster`, { ...body, name: newId() }), 201),
    ];
    const opa_policy = `package p
      default allow := false
      allow if input.cluster_id != "${denied.id}"`;
    const { token } = ok(await admin.post(`${of}/policyApiToken`, { name: newId(), opa_policy }), 201);
    const { results } = ok(await app.session(token).get('/admin/operator/clusters'), 200);
    expect(results.map(({ cluster_id }: { cluster_id: string }) => cluster_id)).toEqual([shown.id]);
    const all = ok(await admin.get('/admin/operator/clusters'), 200).results;
    expect(all.map(({ cluster_id }: { cluster_id: string }) => cluster_id)).toEqual([shown.id, denied.id]);
  });
});
