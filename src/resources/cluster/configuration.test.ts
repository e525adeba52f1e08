import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { requireMachine } from '#platform/machines/elsewhere.ts';
import { checkBody, serialize } from '#platform/http/compile.ts';
import { openClusterSecret } from '#resources/cluster/secrets.ts';
import { DEFAULT_ADVANCED_SETTINGS } from '#resources/cluster/advanced-settings.ts';
import {
  ClusterAdvancedSettings,
  ClusterAdvancedSettingsRequest,
} from '#resources/cluster/schema/advanced-settings.ts';
import { openSecretManagerAccess } from '#resources/cluster/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const node = newId();
const app = useApp(
  {},
  {
    nodeMetrics: async (machineId) => {
      requireMachine(node, machineId);
      return {
        at: new Date('2026-01-02T03:04:05.000Z'),
        instance: 'machine-1',
        cpuCores: 8,
        load: [1.5, 1, 0.5],
        memoryTotalBytes: 16e9,
        memoryAvailableBytes: 4e9,
      };
    },
  },
);

async function makeCluster(admin: Actor, body: Record<string, unknown> = {}) {
  const request = { name: `c ${newId()}`, region: 'here', cloud_provider: 'AWS', ...body };
  const cluster = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, request), 201);
  return { ...cluster, url: `/organization/${admin.organizationId}/cluster/${cluster.id}` };
}

const eventsOf = (id: string) =>
  app.db.selectFrom('audit_event').selectAll().where('target_id', '=', id).orderBy('id').execute();

describe('advanced settings', () => {
  test('have defaults that their own schemas accept and answer unchanged', () => {
    checkBody(ClusterAdvancedSettingsRequest, structuredClone(DEFAULT_ADVANCED_SETTINGS));
    expect(JSON.parse(serialize(ClusterAdvancedSettings, DEFAULT_ADVANCED_SETTINGS))).toEqual(
      DEFAULT_ADVANCED_SETTINGS,
    );
  });

  test('begin as the defaults, and are replaced: absent and null fall back, and only what differs is stored', async () => {
    const admin = await app.organization();
    const { id, url } = await makeCluster(admin);
    const defaults = ok(await admin.get('/defaultClusterAdvancedSettings'), 200);
    expect(ok(await admin.get(`${url}/advancedSettings`), 200)).toEqual(defaults);
    const first = { 'loki.log_retention_in_week': 4, 'database.redis.allowed_cidrs': ['10.0.0.0/8'] };
    expect(ok(await admin.put(`${url}/advancedSettings`, first), 200)).toEqual({ ...defaults, ...first });
    const second = {
      'loki.log_retention_in_week': null,
      'aws.eks.ec2.metadata_imds': 'optional',
      'qovery.static_ip_mode': false,
    };
    expect(ok(await admin.put(`${url}/advancedSettings`, second), 200)).toEqual({
      ...defaults,
      'aws.eks.ec2.metadata_imds': 'optional',
    });
    const row = await app.db.selectFrom('cluster').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    expect(row.advanced_settings).toEqual({ 'aws.eks.ec2.metadata_imds': 'optional' });
    expect((await eventsOf(id)).at(-1)).toMatchObject({ event_type: 'UPDATE', sub_target_type: 'ADVANCED_SETTINGS' });
    ok(await app.anonymous('GET', '/defaultClusterAdvancedSettings'), 401);
  });

  test('are refused with an unknown key, a wrong value, a network that is none, and a request above its limit', async () => {
    const admin = await app.organization();
    const { url } = await makeCluster(admin);
    for (const [field, value] of [
      ['loki.log_retention_in_weeks', 4],
      ['aws.eks.efs.throughput_mode', 'fast'],
      ['k8s.api.allowed_public_access_cidrs', ['10.0.0.0/33']],
      ['nginx.hpa.min_number_instances', 26],
      ['__proto__x', 1],
    ] as const) {
      const answer = await admin.put(`${url}/advancedSettings`, { [field]: value });
      expect(answer, field).toMatchObject({ status: 400, body: { errors: [{ field }] } });
    }
  });
});

describe('the routing table', () => {
  test('is replaced and answered; destinations are networks, each once', async () => {
    const admin = await app.organization();
    const { id, url } = await makeCluster(admin);
    expect(ok(await admin.get(`${url}/routingTable`), 200)).toEqual({ results: [] });
    const route = { destination: '10.0.0.0/16', target: 'pcx-1', description: 'peering' };
    expect(ok(await admin.put(`${url}/routingTable`, { routes: [route] }), 200)).toEqual({ results: [route] });
    expect(ok(await admin.get(`${url}/routingTable`), 200)).toEqual({ results: [route] });
    expect((await eventsOf(id)).at(-1)).toMatchObject({ sub_target_type: 'CLUSTER_ROUTING_TABLE' });
    for (const routes of [[{ ...route, destination: 'home' }], [route, route]])
      expect((await admin.put(`${url}/routingTable`, { routes })).status).toBe(400);
  });
});

describe('the credentials of a cluster', () => {
  test('are those of the organization for the same provider', async () => {
    const admin = await app.organization();
    const { url } = await makeCluster(admin);
    expect(ok(await admin.get(`${url}/cloudProviderInfo`), 200)).toEqual({
      cloud_provider: 'AWS',
      credentials: {},
      region: 'here',
    });
    const account = { type: 'AWS_ROLE', name: 'aws account', role_arn: 'arn:aws:iam::1:role/r' };
    const { id } = ok(await admin.post(`/organization/${admin.organizationId}/aws/credentials`, account), 201);
    const info = { cloud_provider: 'AWS', credentials: { id }, region: 'there' };
    const saved = { ...info, credentials: { id: id, name: 'aws account' } };
    expect(ok(await admin.post(`${url}/cloudProviderInfo`, info), 201)).toEqual(saved);
    expect(ok(await admin.get(`${url}/cloudProviderInfo`), 200)).toEqual(saved);
    for (const wrong of [{ credentials: { id: newId() } }, { cloud_provider: 'GCP' }])
      expect((await admin.post(`${url}/cloudProviderInfo`, wrong)).status).toBe(400);
    const other = await makeCluster(admin, { cloud_provider: 'GCP' });
    const answer = await admin.post(`${other.url}/cloudProviderInfo`, { credentials: { id: id } });
    expect(ok(answer, 400).message).toContain('AWS');
  });
});

describe('the DNS provider', () => {
  test('is this installation until another is set, whose secret is kept and never answered', async () => {
    const admin = await app.organization();
    const { id } = await makeCluster(admin);
    const url = `/cluster/${id}/dnsProvider`;
    expect(ok(await admin.get(url), 200)).toEqual({ dns_provider: { provider: 'QOVERY', domain: 'localhost' } });
    const cloudflare = { provider: 'CLOUDFLARE', domain: 'acme.io', email: 'ops@acme.io' };
    expect(ok(await admin.put(url, { dns_provider: { ...cloudflare, api_token: 's3cret-token' } }), 200)).toEqual({
      dns_provider: { ...cloudflare, proxied: false },
    });
    expect(await openClusterSecret(app.platform, admin, id, 'dns')).toBe('s3cret-token');
    const route53 = {
      provider: 'ROUTE53',
      domain: 'acme.io',
      credentials: { type: 'STATIC', aws_access_key_id: 'AKIA1' },
      aws_region: 'eu-west-3',
    };
    const secret = { ...route53.credentials, aws_secret_access_key: 's3cret-key' };
    expect(ok(await admin.put(url, { dns_provider: { ...route53, credentials: secret } }), 200)).toEqual({
      dns_provider: { ...route53, hosted_zone_id: null },
    });
    expect(await openClusterSecret(app.platform, admin, id, 'dns')).toBe('s3cret-key');
    ok(await admin.put(url, { dns_provider: { provider: 'QOVERY', domain: 'apps.acme.io' } }), 200);
    expect(await openClusterSecret(app.platform, admin, id, 'dns')).toBeNull();
    expect(JSON.stringify(await eventsOf(id))).not.toContain('s3cret');
    for (const wrong of [cloudflare, { provider: 'QOVERY', domain: 'no domain' }, { provider: 'BIND', domain: 'a.b' }])
      expect((await admin.put(url, { dns_provider: wrong })).status).toBe(400);
  });
});

describe('a kubeconfig', () => {
  const config = `apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: k8s, user: admin}}]
clusters: [{name: k8s, cluster: {server: 'https://10.0.0.1:6443', certificate-authority-data: Q0E=}}]
users: [{name: admin, user: {token: t0p-secret}}]
`;
  const put = (actor: Actor, url: string, body: string, type = 'application/x-yaml') =>
    actor.call('PUT', `${url}/kubeconfig`, body, { 'content-type': type });

  test('is kept encrypted, and answered without what lets in', async () => {
    const admin = await app.organization();
    const { id, url } = await makeCluster(admin);
    expect(ok(await admin.get(`${url}/kubeconfig`), 404).message).toContain('no kubeconfig');
    ok(await put(admin, url, config), 204);
    const answer = await admin.get(`${url}/kubeconfig?with_token_from_cli=true&read_only=true`);
    expect(answer.headers['content-type']).toBe('application/x-yaml');
    expect(ok(answer, 200)).toContain('https://10.0.0.1:6443');
    expect(answer.body).not.toContain('t0p-secret');
    expect(await openClusterSecret(app.platform, admin, id, 'kubeconfig')).toBe(config);
    const row = await app.db.selectFrom('cluster_secret').selectAll().where('cluster_id', '=', id).executeTakeFirst();
    expect(row!.value.includes('t0p-secret')).toBe(false);
    expect(JSON.stringify(await eventsOf(id))).not.toContain('t0p-secret');
  });

  test('is refused as JSON, empty, or where the runtime has none', async () => {
    const admin = await app.organization();
    const { url } = await makeCluster(admin);
    ok(await put(admin, url, '"text"', 'application/json'), 415);
    ok(await put(admin, url, ' '), 400);
    const fake = await makeCluster(admin, { runtime: 'fake' });
    expect(ok(await put(admin, fake.url, config), 400).message).toContain('fake runtime');
    expect(ok(await admin.get(`${fake.url}/kubeconfig`), 400).message).toContain('no Kubernetes');
  });
});

describe('what only a managed Kubernetes has', () => {
  test('is refused with the reason on another runtime', async () => {
    const admin = await app.organization();
    const { id, url } = await makeCluster(admin, { runtime: 'fake' });
    const analysis = { kind: 'DEPRECATED_API_CHECK', output_format: 'JSON' };
    for (const answer of [
      await admin.get(`${url}/installationHelmValues`),
      await admin.get(`${url}/eks-anywhere/commits`),
      await admin.get(`${url}/eks-anywhere/jwt`),
      await admin.post(`/clusters/${id}/analysis`, analysis),
    ])
      expect(ok(answer, 400).message).toContain('which is no Kubernetes');
    expect(ok(await admin.put(`${url}/eks-anywhere/commit`, { commit_id: 'a'.repeat(40) }), 400).message).toContain(
      'EKS',
    );
    expect(ok(await admin.put(`${url}/karpenterPrivateSubnetIds`, {}), 400).message).toContain('VPC');
    expect(ok(await admin.get(`/clusters/${id}/analysis`), 200)).toEqual({ results: [] });
    ok(await admin.get(`/clusters/${id}/analysis/${newId()}`), 404);
    ok(await admin.get(`/clusters/${id}/analysis/${newId()}/logs`), 404);
  });

  test('is refused as something that is not done from here on a Kubernetes', async () => {
    const admin = await app.organization();
    const { id, url } = await makeCluster(admin);
    ok(await admin.get(`${url}/installationHelmValues`), 404);
    ok(await admin.get(`${url}/eks-anywhere/jwt`), 400);
    ok(await admin.post(`/clusters/${id}/analysis`, { kind: 'COST_RECOMMENDATION', output_format: 'CSV' }), 400);
    ok(await admin.post(`/clusters/${id}/analysis`, { kind: 'ELSE', output_format: 'CSV' }), 400);
  });

  test('is changed where it is only data: subnets of an own VPC, the commit of an EKS Anywhere repository', async () => {
    const admin = await app.organization();
    const token = newId();
    await app.db
      .insertInto('git_token')
      .values({ id: token, organization_id: admin.organizationId, name: 't', type: 'GITHUB', token: Buffer.from('x') })
      .execute();
    const network = {
      aws_vpc_eks_id: 'vpc-1',
      eks_subnets_zone_a_ids: ['a'],
      eks_subnets_zone_b_ids: ['b'],
      eks_subnets_zone_c_ids: ['c'],
    };
    const repository = { url: 'https://github.com/acme/eks.git', git_token_id: token };
    const { id, url } = await makeCluster(admin, {
      kubernetes: 'PARTIALLY_MANAGED',
      features: [{ id: 'EXISTING_VPC', value: network }],
      infrastructure_charts_parameters: {
        eks_anywhere_parameters: { git_repository: repository, yaml_file_path: 'eks.yaml' },
      },
    });
    ok(await admin.put(`${url}/karpenterPrivateSubnetIds`, { eks_karpenter_fargate_subnets_zone_a_ids: ['f'] }), 200);
    const commit = 'b'.repeat(40);
    expect(ok(await admin.put(`${url}/eks-anywhere/commit`, { commit_id: commit }), 200)).toEqual({
      commit_id: commit,
    });
    const { results } = ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200);
    const cluster = results.find((one: { id: string }) => one.id === id);
    expect(cluster.features[0].value_object.value).toEqual({
      ...network,
      eks_karpenter_fargate_subnets_zone_a_ids: ['f'],
    });
    expect(cluster.infrastructure_charts_parameters.eks_anywhere_parameters.git_repository.commit_id).toBe(commit);
  });
});

describe('metrics', () => {
  const ask = async (admin: Actor, id: string, query: string, more = '&endpoint=query') =>
    admin.get(`/cluster/${id}/metrics?query=${encodeURIComponent(query)}${more}`);
  const machine = { cloud_provider: 'ON_PREMISE', runtime: 'host', node_id: node };

  test('are what the machine of the cluster says, in the form of Prometheus', async () => {
    const admin = await app.organization();
    await app.db
      .insertInto('node')
      .values({ id: node, name: 'machine-1' })
      .onConflict((c) => c.doNothing())
      .execute();
    const { id } = await makeCluster(admin, machine);
    const answer = ok(await ask(admin, id, 'node_load1{instance="machine-1"}'), 200);
    expect(JSON.parse(answer.metrics)).toEqual({
      status: 'success',
      data: {
        resultType: 'vector',
        result: [
          {
            metric: { __name__: 'node_load1', instance: 'machine-1', cluster_id: id },
            value: [new Date('2026-01-02T03:04:05.000Z').getTime() / 1000, '1.5'],
          },
        ],
      },
    });
    const resultOf = (body: { metrics: string }) => JSON.parse(body.metrics).data.result;
    expect(resultOf(ok(await ask(admin, id, 'node_load1{instance="other"}'), 200))).toEqual([]);
    expect(resultOf(ok(await ask(admin, id, 'kube_pod_info'), 200))).toEqual([]);
    expect(resultOf(ok(await ask(admin, id, 'constructor'), 200))).toEqual([]);
    const now = Math.floor(Date.now() / 1000);
    const range = (from: number, to: number) => `&endpoint=api/v1/query_range&start=${from}&end=${to}&step=15s`;
    const [series] = resultOf(ok(await ask(admin, id, 'machine_memory_bytes', range(now - 60, now + 5)), 200));
    expect(series.values).toEqual([[expect.any(Number), '16000000000']]);
    expect(resultOf(ok(await ask(admin, id, 'machine_memory_bytes', range(1, 2)), 200))).toEqual([]);
    for (const [query, more] of [
      ['sum(rate(node_cpu_seconds_total[5m]))', '&endpoint=query'],
      ['node_load1', '&endpoint=series'],
      ['node_load1', '&endpoint=query_range'],
    ] as const)
      ok(await ask(admin, id, query, more), 400);
  });

  test('of another machine are 502, and of no machine 400', async () => {
    const admin = await app.organization();
    const far = newId();
    await app.db.insertInto('node').values({ id: far, name: 'name-of-it' }).execute();
    const { id } = await makeCluster(admin, { ...machine, node_id: far });
    expect(ok(await ask(admin, id, 'node_load1'), 502).message).toContain(far);
    const kubernetes = await makeCluster(admin);
    expect(ok(await ask(admin, kubernetes.id, 'node_load1'), 400).message).toContain('no machine of this installation');
  });
});

describe('a secret manager access', () => {
  test('is opened with its secret for the program itself', async () => {
    const admin = await app.organization();
    const json_credentials = JSON.stringify({ client_email: 'a@b', private_key: 'k' });
    const { id, secret_manager_accesses } = await makeCluster(admin, {
      secret_manager_accesses: [
        {
          name: 'gcp',
          endpoint: { mode: 'GCP_SECRET_MANAGER', region: 'eu', project_id: 'p' },
          authentication: { mode: 'GCP_JSON_CREDENTIALS', json_credentials },
        },
      ],
    });
    expect(await openSecretManagerAccess(app.platform, admin, secret_manager_accesses[0].id)).toEqual({
      id: secret_manager_accesses[0].id,
      clusterId: id,
      name: 'gcp',
      endpoint: { mode: 'GCP_SECRET_MANAGER', region: 'eu', project_id: 'p' },
      authentication: { mode: 'GCP_JSON_CREDENTIALS', json_credentials },
    });
    const stranger = await app.organization();
    expect(await openSecretManagerAccess(app.platform, stranger, secret_manager_accesses[0].id)).toBeUndefined();
  });
});
