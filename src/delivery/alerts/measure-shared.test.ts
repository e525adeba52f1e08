import { beforeAll, describe, expect, test } from 'vitest';
import { ruleBody, useAlerts } from '#delivery/alerts/alerts.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { selfSigned } from '#test/harness/self-signed.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const { receiver, evaluate, messagesOf } = useAlerts(app);

let first: Actor;
beforeAll(async () => {
  first = await app.organization();
});

const condition = (promql: string, threshold?: number, operator = 'ABOVE') =>
  threshold === undefined ? { kind: 'BUILT', promql } : { kind: 'BUILT', promql, operator, threshold };

/** Saves a rule and returns what it finds: name and text of each alert, after another evaluation. */
async function watch(
  admin: Actor,
  clusterId: string,
  watched: ReturnType<typeof condition>,
  target = { target_type: 'CLUSTER', target_id: clusterId },
) {
  const { id: receiverId } = await receiver(admin);
  const body = ruleBody(admin, clusterId, target, [receiverId], { condition: watched });
  const { id } = ok(await admin.post('/alert-rules', body), 201);
  return async () => {
    await evaluate();
    const rule = ok(await admin.get(`/alert-rules/${id}`), 200);
    expect(rule.problem).toBeNull();
    const found = app.db.selectFrom('alert_incident').select(['name', 'detail', 'since']).where('rule_id', '=', id);
    return (await found.orderBy('name').execute()).map(({ name, detail }) => `${name}: ${detail}`);
  };
}

const TIME = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d UTC`;
const matching = (text: string) => expect.stringMatching(new RegExp(`^${text}$`));
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

async function organization() {
  const admin = await app.organization();
  const { environment, application, project } = await makeExample(admin);
  const clusterId: string = environment.cluster_id;
  return { admin, project, environment, application, clusterId };
}

describe('an alert of a token', () => {
  test('fires for API tokens that end within the days, also after their end, and is over once they are revoked', async () => {
    const { admin, clusterId } = await organization();
    const url = `/organization/${admin.organizationId}/apiToken`;
    const make = async (name: string, expires_at?: string) =>
      ok(await admin.post(url, { name, scope: 'READ', ...(expires_at ? { expires_at } : {}) }), 201).id;
    const [late] = [await make('late', inDays(13)), await make('sound', inDays(15)), await make('endless')];
    await (await organization()).admin.post(url, { name: 'of another' });
    const found = await watch(admin, clusterId, condition('api_token_days_left', 14, 'BELOW'));
    expect(await found()).toEqual([matching(`late: expires at ${TIME}`)]);
    expect(await messagesOf(admin)).toMatchObject([
      { content: { subjects: 'these API tokens', firing: [{ id: late }] } },
    ]);
    await sql`update api_token set expires_at = now() - interval '1 day' where id = ${late}`.execute(app.db);
    expect(await found()).toEqual([matching(`late: expired at ${TIME}`)]);
    ok(await admin.delete(`${url}/${late}`), 204);
    expect(await found()).toEqual([]);
    expect(await messagesOf(admin)).toMatchObject([{ content: { firing: [], resolved: [{ id: late }] } }]);
  });

  test('fires for git tokens of the organization, and is over once they are replaced', async () => {
    const [{ admin, clusterId }, other] = [await organization(), await organization()];
    const make = async (of: Actor, name: string, expired_at?: string) => {
      const body = { name, type: 'GITHUB', token: 't', ...(expired_at ? { expired_at } : {}) };
      return ok(await of.post(`/organization/${of.organizationId}/gitToken`, body), 201).id;
    };
    const [late] = [await make(admin, 'late', inDays(6)), await make(admin, 'endless')];
    await make(other.admin, 'foreign', inDays(1));
    const found = await watch(admin, clusterId, condition('git_token_days_left', 7, 'BELOW'));
    expect(await found()).toEqual([matching(`late: expires at ${TIME}`)]);
    const renewed = { name: 'late', type: 'GITHUB', expired_at: inDays(90) };
    ok(await admin.put(`/organization/${admin.organizationId}/gitToken/${late}`, renewed), 200);
    expect(await found()).toEqual([]);
  });
});

describe('an alert of the credentials of a cluster', () => {
  const kubeconfig = (user: object) =>
    JSON.stringify({
      'current-context': 'main',
      contexts: [{ name: 'main', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: 'https://elsewhere' } }],
      users: [{ name: 'u', user }],
    });
  const webToken = (exp: number) =>
    ['{"alg":"none"}', JSON.stringify({ exp }), 's'].map((part) => Buffer.from(part).toString('base64url')).join('.');

  test('follows the kubeconfig: a token that ends soon fires, and one without a known end, a later one or none ends it', async () => {
    const { admin } = await organization();
    const made = { name: 'k8s', cloud_provider: 'ON_PREMISE', region: 'here', runtime: 'kubernetes' };
    const { id } = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, made), 201);
    const put = async (user: object) => {
      const url = `/organization/${admin.organizationId}/cluster/${id}/kubeconfig`;
      const headers = { 'content-type': 'application/x-yaml' };
      expect((await admin.call('PUT', url, kubeconfig(user), headers)).status).toBe(204);
    };
    const found = await watch(admin, id, condition('cluster_credentials_days_left', 14, 'BELOW'));
    expect(await found()).toEqual([]);
    const soon = Math.floor(Date.now() / 1000) + 86_400;
    await put({ token: webToken(soon) });
    expect(await found()).toEqual([matching(`k8s: expires at ${TIME}`)]);
    expect(await found()).toHaveLength(1);
    await put({ token: 'opaque' });
    expect(await found()).toEqual([]);
    const { cert, key } = selfSigned();
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    await put({ 'client-certificate-data': base64(cert), 'client-key-data': base64(key) });
    expect(await found()).toEqual([]);
    const stored = app.db.selectFrom('cluster_secret').select('ends_at').where('cluster_id', '=', id);
    expect((await stored.executeTakeFirstOrThrow()).ends_at).toEqual(new Date('2049-12-31T23:59:59.000Z'));
    await put({ token: webToken(soon - 2 * 86_400) });
    expect(await found()).toEqual([matching(`k8s: expired at ${TIME}`)]);
  });
});

describe('an alert of a disk', () => {
  /** A machine with the cluster of an organization, and a function that stores how full its disks are. */
  async function machine() {
    const made = await organization();
    const node = newId();
    await app.db.insertInto('node').values({ id: node, name: 'secret-hostname' }).execute();
    await app.db.updateTable('cluster').set({ node_id: node }).where('id', '=', made.clusterId).execute();
    const disk = (holds: string, percent: number, minutes = 0) =>
      sql`insert into node_disk (node_id, holds, total_bytes, free_bytes, measured_at)
        values (${node}, ${holds}, ${100 * 2 ** 30}, ${(100 - percent) * 2 ** 30}, now() - make_interval(mins => ${minutes}))
        on conflict (node_id, holds) do update set free_bytes = excluded.free_bytes, measured_at = excluded.measured_at`.execute(
        app.db,
      );
    return { ...made, node, disk };
  }

  test('names the fullest disk of the machine of the cluster, by ids alone, and ends once there is room', async () => {
    const { admin, clusterId, node, disk } = await machine();
    const other = await machine();
    await other.disk('DATA', 99);
    const found = await watch(admin, clusterId, condition('disk_used_percent', 85));
    expect(await found()).toEqual([]);
    await disk('DATA', 85);
    await disk('ENGINE', 20);
    expect(await found()).toEqual([]);
    await disk('ENGINE', 91);
    const text = `, machine ${node}: the disk of its container engine is 91.0 % full, 9216 MiB are free`;
    expect(await found()).toEqual([expect.stringContaining(text)]);
    await disk('DATA', 95);
    expect(await found()).toEqual([expect.stringContaining('the disk of its data directory is 95.0 % full')]);
    expect(JSON.stringify(await messagesOf(admin))).not.toContain('secret-hostname');
    await disk('DATA', 84);
    await disk('ENGINE', 85);
    expect(await found()).toEqual([]);
  });

  test('stays while the machine is not measured, and begins with no old measurement', async () => {
    const { admin, clusterId, disk } = await machine();
    const found = await watch(admin, clusterId, condition('disk_used_percent', 85, 'ABOVE_OR_EQUAL'));
    await disk('DATA', 99, 6);
    expect(await found()).toEqual([]);
    await disk('DATA', 85);
    expect(await found()).toHaveLength(1);
    await disk('DATA', 0, 6);
    expect(await found()).toHaveLength(1);
    await disk('ENGINE', 1);
    expect(await found(), 'the other disk is not the one that was full').toHaveLength(1);
    await app.db.updateTable('node_disk').set({ total_bytes: 0, free_bytes: 0, measured_at: new Date() }).execute();
    expect(await found(), 'a file system without a size says nothing').toHaveLength(1);
    await app.db.deleteFrom('node_disk').execute();
    expect(await found()).toHaveLength(1);
    await disk('ENGINE', 1);
    expect(await found(), 'the full disk is known to be gone').toEqual([]);
  });
});

describe('an alert of the queue', () => {
  /** Two waiting deployments, in one environment each. */
  async function queue() {
    const made = await organization();
    const second = await makeExample(made.admin);
    for (const { application } of [made, second])
      ok(await made.admin.post(`/application/${application.id}/deploy`), 200);
    return { ...made, second };
  }
  const age = (environmentId: string, seconds: number) =>
    sql`update deployment set created_at = now() - make_interval(secs => ${seconds}) where environment_id = ${environmentId}`.execute(
      app.db,
    );

  test('counts the deployments that wait on the cluster or for the environment', async () => {
    const { admin, environment, clusterId, second } = await queue();
    await queue();
    const ofCluster = await watch(admin, clusterId, condition('deployments_waiting', 2, 'ABOVE_OR_EQUAL'));
    const target = { target_type: 'ENVIRONMENT', target_id: environment.id };
    const ofEnvironment = await watch(admin, clusterId, condition('deployments_waiting', 0), target);
    const above = await watch(admin, clusterId, condition('deployments_waiting', 2));
    expect(await ofCluster()).toEqual([expect.stringMatching(/: 2 deployments wait$/)]);
    expect(await ofEnvironment()).toEqual([expect.stringMatching(/ \/ e: 1 deployment waits$/)]);
    expect(await above()).toEqual([]);
    ok(await admin.post(`/environment/${second.environment.id}/cancelDeployment`), 200);
    expect(await ofCluster()).toEqual([]);
    expect(await ofEnvironment()).toHaveLength(1);
  });

  test('names the environments whose deployment waits for too long, until it runs or is cancelled', async () => {
    const { admin, project, environment, clusterId, second } = await queue();
    const found = await watch(admin, clusterId, condition('deployment_waiting_seconds', 600));
    const target = { target_type: 'ENVIRONMENT', target_id: second.environment.id };
    const other = await watch(admin, clusterId, condition('deployment_waiting_seconds', 600), target);
    expect(await found()).toEqual([]);
    await age(environment.id, 700);
    await age(second.environment.id, 590);
    expect(await found()).toEqual([matching(`${project.name} / e: deployment 1 waits since ${TIME}`)]);
    expect(await other()).toEqual([]);
    await sql`update deployment set status = 'RUNNING' where environment_id = ${environment.id}`.execute(app.db);
    expect(await found()).toEqual([]);
    await age(second.environment.id, 601);
    expect(await other()).toHaveLength(1);
    ok(await admin.post(`/environment/${second.environment.id}/cancelDeployment`), 200);
    expect(await other()).toEqual([]);
  });

  test('tells that requests cannot end by themselves, without what the watchdog tells the operator', async () => {
    const [{ admin, clusterId }, other] = [await organization(), await organization()];
    const finding = (cluster_id: string, kind: string, reported_at: Date | null) =>
      app.db
        .insertInto('queue_finding')
        .values({ id: `${kind} ${newId()}`, cluster_id, kind, message: 'The machine secret-hostname', reported_at })
        .execute();
    const found = await watch(admin, clusterId, condition('queue_stuck'));
    await finding(other.clusterId, 'CYCLE', new Date());
    await finding(clusterId, 'CYCLE', null);
    expect(await found()).toEqual([]);
    await finding(clusterId, 'CYCLE', new Date());
    await finding(clusterId, 'UNCLAIMED', new Date());
    expect(await found()).toEqual([expect.stringMatching(/no worker claims them.*; .*in a circle/)]);
    expect(JSON.stringify(await messagesOf(admin))).not.toContain('secret-hostname');
    await app.db.deleteFrom('queue_finding').execute();
    expect(await found()).toEqual([]);
  });
});

describe('an alert of the copies of the installation', () => {
  const copy = (hours: number, checked: { days: number; error: string | null } | null = null) =>
    app.db
      .insertInto('installation_copy')
      .values({
        name: newId(),
        bytes: 1,
        taken_at: new Date(Date.now() - hours * 3_600_000),
        ...(checked && { checked_at: new Date(Date.now() - checked.days * 86_400_000), check_error: checked.error }),
      })
      .execute();
  const ageInstallation = (days: number) =>
    sql`update installation set created_at = now() - make_interval(days => ${days})`.execute(app.db);

  test('fires when none is young enough, counted from the making of the installation, and ends with the next one', async () => {
    const { environment } = await makeExample(first);
    const found = await watch(first, environment.cluster_id, condition('copy_age_hours', 48));
    await ageInstallation(1);
    expect(await found()).toEqual([]);
    await ageInstallation(3);
    expect(await found()).toEqual(['copies of the installation: no copy was ever sent to a store elsewhere']);
    await copy(50);
    expect(await found()).toEqual([matching(`copies of the installation: the last copy is of ${TIME}`)]);
    await copy(47);
    expect(await found()).toEqual([]);
    await app.db.deleteFrom('installation_copy').execute();
  });

  test('counts only checks that found a copy good', async () => {
    const { environment } = await makeExample(first);
    const found = await watch(first, environment.cluster_id, condition('copy_check_age_days', 14));
    await ageInstallation(20);
    await copy(1, { days: 0, error: 'it is broken' });
    expect(await found()).toEqual(['copies of the installation: none of the copies was found good']);
    await copy(1, { days: 15, error: null });
    expect(await found()).toEqual([matching(`copies of the installation: the last copy was found good at ${TIME}`)]);
    await copy(1, { days: 13, error: null });
    expect(await found()).toEqual([]);
  });

  test.each([
    ['copy_age_hours', 48],
    ['copy_check_age_days', 14],
  ])('%s is refused and never found for another organization than the first', async (promql, threshold) => {
    const { admin, clusterId } = await organization();
    await ageInstallation(1_000);
    await app.db.deleteFrom('installation_copy').execute();
    const { id: receiverId } = await receiver(admin);
    const target = { target_type: 'CLUSTER', target_id: clusterId };
    const body = ruleBody(admin, clusterId, target, [receiverId], { condition: condition(promql, threshold) });
    const { errors } = ok(await admin.post('/alert-rules', body), 400);
    expect(errors[0]).toMatchObject({
      field: 'condition.promql',
      message: expect.stringContaining('only rules of the first organization of the installation'),
    });
    expect(errors[0].message.split(':')[0]).not.toContain('copy_');
    const found = await watch(admin, clusterId, condition('queue_stuck'));
    // As if the organization had been the first one when it saved the rule.
    await sql`update alert_rule set condition = ${JSON.stringify(condition(promql, threshold))}::jsonb
      where organization_id = ${admin.organizationId}`.execute(app.db);
    expect(await found()).toEqual([]);
  });
});

describe('a rule on what services share', () => {
  test.each([
    ['api_token_days_left', 'apiToken.read'],
    ['git_token_days_left', 'gitToken.read'],
    ['disk_used_percent', 'cluster.read'],
    ['deployments_waiting', 'cluster.read'],
    ['deployment_waiting_seconds', 'environment.read'],
    ['queue_stuck', 'cluster.read'],
    ['cluster_credentials_days_left', 'cluster.read'],
    ['copy_age_hours', 'organization.read'],
  ])('tells nothing of %s to a maker who may not do %s', async (promql, action) => {
    const { admin, environment, application, clusterId } = await organization();
    await sql`update installation set first_organization_id = ${admin.organizationId}`.execute(app.db);
    const of = `/organization/${admin.organizationId}`;
    ok(await admin.post(`${of}/apiToken`, { name: 't', scope: 'READ', expires_at: inDays(1) }), 201);
    ok(await admin.post(`${of}/gitToken`, { name: 't', type: 'GITHUB', token: 't', expired_at: inDays(1) }), 201);
    const node = newId();
    await app.db.insertInto('node').values({ id: node, name: 'n' }).execute();
    await app.db.updateTable('cluster').set({ node_id: node }).where('id', '=', clusterId).execute();
    await app.db
      .insertInto('node_disk')
      .values({ node_id: node, holds: 'DATA', total_bytes: 100, free_bytes: 1 })
      .execute();
    ok(await admin.post(`/application/${application.id}/deploy`), 200);
    await sql`update deployment set created_at = now() - interval '1 hour' where environment_id = ${environment.id}`.execute(
      app.db,
    );
    await app.db
      .insertInto('queue_finding')
      .values({ id: newId(), cluster_id: clusterId, kind: 'CYCLE', message: 'm', reported_at: new Date() })
      .execute();
    await sql`insert into cluster_secret (organization_id, cluster_id, name, value, ends_at, end_read_at)
      values (${admin.organizationId}, ${clusterId}, 'kubeconfig', '\\x00', now(), now())`.execute(app.db);
    await sql`update installation set created_at = now() - interval '100 days'`.execute(app.db);
    await app.db.deleteFrom('installation_copy').execute();

    const found = await watch(admin, clusterId, condition('queue_stuck'));
    const isDays = promql.endsWith('days_left');
    const watched =
      promql === 'queue_stuck' ? condition(promql) : condition(promql, isDays ? 14 : 0.5, isDays ? 'BELOW' : 'ABOVE');
    await sql`update alert_rule set condition = ${JSON.stringify(watched)}::jsonb where organization_id = ${admin.organizationId}`.execute(
      app.db,
    );
    expect(await found()).toHaveLength(1);
    const opa_policy = `package p\ndefault allow := false\nallow if input.action != "${action}"`;
    const { id: token } = ok(await admin.post(`${of}/policyApiToken`, { name: newId(), opa_policy }), 201);
    await sql`update alert_rule set set_with = ${token} where organization_id = ${admin.organizationId}`.execute(
      app.db,
    );
    expect(await found()).toEqual([]);
    expect(await messagesOf(admin), 'nothing is told of what is not seen any more').toMatchObject([
      { content: { resolved: [] } },
    ]);
  });
});
