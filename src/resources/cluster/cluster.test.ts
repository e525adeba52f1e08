import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const request = (body: Record<string, unknown> = {}) => ({
  name: `c ${newId()}`,
  region: 'eu-west-3',
  cloud_provider: 'AWS',
  ...body,
});

const urlOf = (actor: Actor) => `/organization/${actor.organizationId}/cluster`;

const create = async (actor: Actor, body: Record<string, unknown> = {}) =>
  ok(await actor.post(urlOf(actor), request(body)), 201);

async function makeNode(isTemporary = false): Promise<string> {
  const id = newId();
  await app.db
    .insertInto('node')
    .values({ id, name: `node-${id.slice(0, 4)}`, is_temporary: isTemporary })
    .execute();
  return id;
}

const eventsOf = async (id: string) =>
  (await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', id).orderBy('id').execute()).map(
    (event) => [event.target_type, event.event_type],
  );

describe('a cluster', () => {
  test('is made with what the reference requires alone, as a Kubernetes that was never deployed', async () => {
    const admin = await app.organization();
    const cluster = await create(admin, { name: ' Paris ' });
    expect(cluster).toMatchObject({
      name: 'Paris',
      description: '',
      region: 'eu-west-3',
      cloud_provider: 'AWS',
      runtime: 'kubernetes',
      kubernetes: 'MANAGED',
      status: 'READY',
      deployment_status: 'NEVER_DEPLOYED',
      is_default: false,
      min_running_nodes: 1,
      features: [],
      secret_manager_accesses: [],
    });
    expect(ok(await admin.get(urlOf(admin)), 200).results[1]).toEqual(cluster);
    expect(await eventsOf(cluster.id)).toEqual([['CLUSTER', 'CREATE']]);
  });

  test('is the default one if it is the first, also when two are made at once', async () => {
    const admin = await app.organization();
    const [first] = ok(await admin.get(urlOf(admin)), 200).results;
    ok(await admin.delete(`${urlOf(admin)}/${first.id}`), 204);
    const made = await Promise.all([create(admin), create(admin)]);
    expect(made.map((cluster) => cluster.is_default).sort()).toEqual([false, true]);
  });

  test('of a machine carries its node, and is refused where the node is not one of ours', async () => {
    const admin = await app.organization();
    const node = await makeNode();
    const cluster = await create(admin, { cloud_provider: 'ON_PREMISE', runtime: 'docker', node_id: node });
    expect(cluster).toMatchObject({ runtime: 'docker', node_id: node, kubernetes: 'SELF_MANAGED' });
    for (const body of [
      { runtime: 'docker', node_id: newId() },
      { runtime: 'kubernetes', node_id: node },
      { runtime: 'vmware' },
    ])
      expect((await admin.post(urlOf(admin), request(body))).status, JSON.stringify(body)).toBe(400);
  });

  test('cannot live on a machine whose data end with its process', async () => {
    const admin = await app.organization();
    const node = await makeNode(true);
    const body = { cloud_provider: 'ON_PREMISE', runtime: 'docker' };
    const refused = await admin.post(urlOf(admin), request({ ...body, node_id: node }));
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).toContain('names no machine that this organization may use');
    expect(JSON.stringify((await admin.post(urlOf(admin), request(body))).body)).not.toContain(node);
  });

  test('keeps its name unique without case, under concurrency too', async () => {
    const admin = await app.organization();
    const answers = await Promise.all(['Paris', 'paris'].map((name) => admin.post(urlOf(admin), request({ name }))));
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409]);
  });

  test('answers its features with the kind of value that they have', async () => {
    const admin = await app.organization();
    const gateway = { nat_gateway_type: { provider: 'gcp', static_ips_enabled: true, static_ips_count: 2 } };
    const network = { vpc_name: 'main', private_nodes: true };
    const values = ['text', true, network, gateway, { nat_gateway_type: null }, null];
    const ids = ['STATIC_IP', 'KARPENTER', 'EXISTING_VPC', 'NAT_GATEWAY', 'VPC_SUBNET', 'GKE_KMS_KEY'];
    const features = values.map((value, index) => ({ id: ids[index], value }));
    const cluster = await create(admin, { features });
    expect(cluster.features.map((feature: any) => [feature.value_object?.type, feature.value_object?.value])).toEqual([
      ['STRING', 'text'],
      ['BOOLEAN', true],
      ['GCP_USER_PROVIDED_NETWORK', network],
      ['NAT_GATEWAY', gateway],
      ['NAT_GATEWAY', {}],
      [undefined, undefined],
    ]);
    expect(cluster.features.map((feature: any) => feature.id)).toEqual(ids);
    const wrong = [{ value: { vpc_id: 'neither of them' } }, { value: 7 }, { id: newId(), value: true }];
    for (const feature of wrong)
      expect((await admin.post(urlOf(admin), request({ features: [feature] }))).status).toBe(400);
  });

  test('keeps every parameter of the reference, and what an edit leaves out', async () => {
    const admin = await app.organization();
    const parameters = {
      description: 'kept',
      production: true,
      min_running_nodes: 3,
      max_running_nodes: 9,
      disk_size: 50,
      disk_iops: 3000,
      instance_type: 't3.medium',
      ssh_keys: ['ssh-ed25519 AAAA'],
      keda: { enabled: true },
      metrics_parameters: {
        enabled: true,
        configuration: { kind: 'MANAGED_BY_QOVERY', alerting: { enabled: true, default_rule_labels: { a: 'b' } } },
      },
      infrastructure_charts_parameters: { nginx_parameters: { replica_count: 2 } },
    };
    const cluster = await create(admin, parameters);
    expect(cluster).toMatchObject(parameters);
    const url = `${urlOf(admin)}/${cluster.id}`;
    const edited = ok(
      await admin.put(url, { name: 'renamed', region: 'eu-west-3', cloud_provider: 'AWS', disk_size: 60 }),
      200,
    );
    expect(edited).toEqual({ ...cluster, name: 'renamed', disk_size: 60, updated_at: edited.updated_at });
    expect(await eventsOf(cluster.id)).toEqual([
      ['CLUSTER', 'CREATE'],
      ['CLUSTER', 'UPDATE'],
    ]);
  });

  test('takes its own answer back, and nothing of it that is not asked for', async () => {
    const admin = await app.organization();
    const cluster = await create(admin);
    const answer = {
      ...cluster,
      version: '9.9',
      cpu: 64,
      is_demo: true,
      status: 'DEPLOYED',
      infrastructure_outputs: {},
    };
    const edited = ok(await admin.put(`${urlOf(admin)}/${cluster.id}`, answer), 200);
    expect(edited).toEqual({ ...cluster, updated_at: edited.updated_at });
  });

  test('keeps what it was made with', async () => {
    const admin = await app.organization();
    const cluster = await create(admin);
    for (const change of [{ cloud_provider: 'GCP' }, { runtime: 'docker' }, { kubernetes: 'SELF_MANAGED' }]) {
      const answer = await admin.put(`${urlOf(admin)}/${cluster.id}`, request(change));
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ field: Object.keys(change)[0] }] } });
    }
  });

  test('is refused with what a body names and the organization does not have', async () => {
    const admin = await app.organization();
    const repository = { url: 'https://github.com/acme/eks.git', git_token_id: newId() };
    for (const [field, body] of [
      ['labels_groups', { labels_groups: [{ id: newId() }] }],
      ['cloud_provider_credentials.credentials.id', { cloud_provider_credentials: { credentials: { id: newId() } } }],
      [
        'infrastructure_charts_parameters.eks_anywhere_parameters.git_repository.git_token_id',
        {
          infrastructure_charts_parameters: {
            eks_anywhere_parameters: { git_repository: repository, yaml_file_path: 'a.yaml' },
          },
        },
      ],
      ['min_running_nodes', { min_running_nodes: 3, max_running_nodes: 2 }],
    ] as const) {
      const answer = await admin.post(urlOf(admin), request(body));
      expect(answer, field).toMatchObject({ status: 400, body: { errors: [{ field }] } });
      expect(answer.body.message).not.toMatch(/exist/);
    }
  });

  test('is deleted, unless something stands on it', async () => {
    const admin = await app.organization();
    const cluster = await create(admin);
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
    const environment = ok(
      await admin.post(`/project/${project.id}/environment`, { name: 'staging', cluster_id: cluster.id }),
      201,
    );
    const url = `${urlOf(admin)}/${cluster.id}`;
    expect(ok(await admin.delete(url), 409).message).toContain('staging');
    await app.db.deleteFrom('environment').where('id', '=', environment.id).execute();
    ok(await admin.delete(`${url}?deleteMode=DELETE_QOVERY_CONFIG&skipReconcile=true`), 204);
    ok(await admin.get(`${url}/status`), 404);
    expect(await eventsOf(cluster.id)).toEqual([
      ['CLUSTER', 'CREATE'],
      ['CLUSTER', 'DELETE'],
    ]);
  });

  test('lists its environments with the services on them', async () => {
    const admin = await app.organization();
    const [cluster] = ok(await admin.get(urlOf(admin)), 200).results;
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
    const service = ok(
      await admin.post(`/environment/${environment.id}/application`, {
        name: 'web',
        git_repository: { url: 'https://github.com/acme/shop.git' },
      }),
      201,
    );
    expect(ok(await admin.get(`/cluster/${cluster.id}/environments`), 200)).toEqual({
      results: [
        {
          environment_id: environment.id,
          environment_name: 'e',
          project_id: project.id,
          project_name: 'p',
          services: [{ id: service.id, name: 'web', type: 'APPLICATION' }],
        },
      ],
    });
  });

  test('leaves out the environments that the caller may not see', async () => {
    const admin = await app.organization();
    const organization = `/organization/${admin.organizationId}`;
    const [cluster] = ok(await admin.get(urlOf(admin)), 200).results;
    const project = ok(await admin.post(`${organization}/project`, { name: 'p' }), 201);
    for (const mode of ['DEVELOPMENT', 'PRODUCTION'])
      ok(await admin.post(`/project/${project.id}/environment`, { name: mode, mode }), 201);
    const permissions = ['DEVELOPMENT', 'PREVIEW', 'STAGING', 'PRODUCTION'].map((environment_type) => ({
      environment_type,
      permission: environment_type === 'PRODUCTION' ? 'NO_ACCESS' : 'VIEWER',
    }));
    const role = ok(
      await admin.post(`${organization}/customRole`, {
        name: 'r',
        project_permissions: [{ project_id: project.id, is_admin: false, permissions }],
      }),
      201,
    );
    const { token } = ok(await admin.post(`${organization}/apiToken`, { name: 't', role_id: role.id }), 201);
    const answer = await app.anonymous('GET', `/cluster/${cluster.id}/environments`, undefined, {
      authorization: `Token ${token}`,
    });
    expect(ok(answer, 200).results.map((one: any) => one.environment_name)).toEqual(['DEVELOPMENT']);
  });

  test('is not there for strangers, nor under the path of another organization', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { id } = await create(admin);
    for (const answer of [
      await stranger.get(`${urlOf(admin)}/${id}/status`),
      await stranger.get(`/cluster/${id}/environments`),
      await stranger.delete(`/cluster/${id}/lock`),
      await stranger.get(`${urlOf(stranger)}/${id}/status`),
      await admin.get(`${urlOf(stranger)}/${id}/status`),
      await admin.get(`${urlOf(admin)}/${newId()}/status`),
    ])
      expect(answer.status).toBe(404);
  });

  test('takes ADMIN for every change, READ for looking', async () => {
    const admin = await app.organization();
    const { id } = await create(admin);
    const writer = await admin.withScope('WRITE');
    for (const answer of [
      await writer.post(urlOf(admin), request()),
      await writer.put(`${urlOf(admin)}/${id}`, request()),
      await writer.post(`${urlOf(admin)}/${id}/deploy`),
      await writer.post(`/cluster/${id}/lock`, { reason: 'x' }),
      await writer.get(`${urlOf(admin)}/${id}/kubeconfig`),
      await writer.delete(`${urlOf(admin)}/${id}`),
    ])
      expect(answer.status).toBe(403);
    const reader = await admin.withScope('READ');
    ok(await reader.get(`${urlOf(admin)}/${id}/status`), 200);
    ok(await reader.get(urlOf(admin)), 200);
  });
});

describe('a secret manager access', () => {
  const access = (authentication: object, more: object = {}) => ({
    name: 'vault',
    endpoint: { mode: 'AWS_SECRET_MANAGER', region: 'eu-west-3' },
    authentication,
    ...more,
  });
  const keys = { mode: 'AWS_STATIC_CREDENTIALS', region: 'eu-west-3', access_key: 'AKIA1' };

  test('never answers its secret, keeps it over edits without it, and stores it encrypted', async () => {
    const admin = await app.organization();
    const cluster = await create(admin, {
      secret_manager_accesses: [access({ ...keys, secret_key: 'hunter2hunter2' })],
    });
    expect(JSON.stringify(cluster)).not.toContain('hunter2');
    expect(cluster.secret_manager_accesses).toMatchObject([{ name: 'vault', authentication: keys }]);
    const [{ id }] = cluster.secret_manager_accesses;
    const before = await app.db.selectFrom('secret_manager_access').selectAll().where('id', '=', id).executeTakeFirst();
    const edited = ok(
      await admin.put(
        `${urlOf(admin)}/${cluster.id}`,
        request({ name: cluster.name, secret_manager_accesses: [access(keys, { id, name: 'renamed' })] }),
      ),
      200,
    );
    expect(edited.secret_manager_accesses).toMatchObject([{ id, name: 'renamed', authentication: keys }]);
    const after = await app.db.selectFrom('secret_manager_access').selectAll().where('id', '=', id).executeTakeFirst();
    expect(after!.secret!.equals(before!.secret!)).toBe(true);
    expect(after!.secret!.includes('hunter2')).toBe(false);
    const events = await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', cluster.id).execute();
    expect(JSON.stringify(events)).not.toContain('hunter2');
  });

  test("is refused without its secret, with an id that is not the cluster's, and in no known form", async () => {
    const admin = await app.organization();
    for (const wrong of [
      access(keys),
      access({ mode: 'AWS_ROLE_ARN', role_arn: 'r' }, { id: newId() }),
      access({ mode: 'PASSWORD' }),
      access({ mode: 'AUTOMATICALLY_CONFIGURED' }, { endpoint: { mode: 'GCP_SECRET_MANAGER', region: 'r' } }),
    ]) {
      const answer = await admin.post(urlOf(admin), request({ secret_manager_accesses: [wrong] }));
      expect(answer.status, JSON.stringify(wrong)).toBe(400);
    }
    expect(ok(await admin.get(urlOf(admin)), 200).results).toHaveLength(1);
  });

  test('that a variable reads from is not removed', async () => {
    const admin = await app.organization();
    const cluster = await create(admin, {
      secret_manager_accesses: [access({ mode: 'AWS_ROLE_ARN', role_arn: 'arn' })],
    });
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
    await app.db
      .insertInto('variable')
      .values({
        id: newId(),
        organization_id: admin.organizationId,
        key: 'DB_PASSWORD',
        is_secret: false,
        value: 'upstream',
        scope: 'PROJECT',
        project_id: project.id,
        owned_by: 'QOVERY',
        secret_manager_access_id: cluster.secret_manager_accesses[0].id,
      })
      .execute();
    const url = `${urlOf(admin)}/${cluster.id}`;
    const answer = await admin.put(url, request({ secret_manager_accesses: [] }));
    expect(ok(answer, 409).message).toContain('DB_PASSWORD');
    ok(await admin.delete(url), 409);
  });
});

describe('a lock', () => {
  test('holds back what is asked of the cluster, is listed, and goes with DELETE', async () => {
    const admin = await app.organization();
    const cluster = await create(admin);
    const locked = ok(await admin.post(`/cluster/${cluster.id}/lock`, { reason: 'upgrade', ttl_in_days: 2 }), 200);
    expect(locked).toMatchObject({ reason: 'upgrade', ttl_in_days: 2, cluster_id: cluster.id });
    const url = `${urlOf(admin)}/${cluster.id}`;
    for (const answer of [
      await admin.post(`${url}/deploy`),
      await admin.post(`${url}/stop`),
      await admin.post(`/cluster/${cluster.id}/upgrade`),
      await admin.delete(url),
      await admin.post(`/cluster/${cluster.id}/lock`, { reason: 'again' }),
    ])
      expect(ok(answer, 409).message).toContain('locked');
    expect(ok(await admin.get(`/organization/${admin.organizationId}/lock`), 200)).toEqual({ results: [locked] });
    expect(ok(await admin.get(`${url}/status`), 200).cluster_lock).toEqual(locked);
    expect(ok(await admin.get(`${url}/isReady`), 200)).toEqual({ is_ready: false });
    ok(await admin.delete(`/cluster/${cluster.id}/lock`), 204);
    ok(await admin.delete(`/cluster/${cluster.id}/lock`), 204);
    expect(ok(await admin.get(`/organization/${admin.organizationId}/lock`), 200)).toEqual({ results: [] });
    expect(await eventsOf(cluster.id)).toEqual([
      ['CLUSTER', 'CREATE'],
      ['CLUSTER', 'LOCK'],
      ['CLUSTER', 'UNLOCK'],
    ]);
  });

  test('needs a reason and a time of at least a day', async () => {
    const admin = await app.organization();
    const { id } = await create(admin);
    for (const body of [{}, { reason: ' ' }, { reason: 'x', ttl_in_days: 0 }])
      expect((await admin.post(`/cluster/${id}/lock`, body)).status).toBe(400);
  });

  test('whose time is over is one no more', async () => {
    const admin = await app.organization();
    const { id } = await create(admin);
    ok(await admin.post(`/cluster/${id}/lock`, { reason: 'short', ttl_in_days: 1 }), 200);
    await app.db
      .updateTable('cluster')
      .set({ lock_expires_at: new Date(Date.now() - 1) })
      .where('id', '=', id)
      .execute();
    expect(ok(await admin.get(`/organization/${admin.organizationId}/lock`), 200)).toEqual({ results: [] });
    ok(await admin.post(`${urlOf(admin)}/${id}/deploy`), 200);
  });
});
