import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { OrganizationRules } from '#platform/settings/organization-rules.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { EXAMPLE, useEngine } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_ORGANIZATION_RUNTIMES: '*=docker,kubernetes,fake;first=*' });
useEngine(app);

const makeNode = async (): Promise<string> => {
  const id = newId();
  await app.db
    .insertInto('node')
    .values({ id, name: `machine-${id}` })
    .execute();
  return id;
};

const makeCluster = (admin: Actor, body: object) =>
  admin.post(`/organization/${admin.organizationId}/cluster`, {
    name: `c ${newId()}`,
    cloud_provider: 'ON_PREMISE',
    region: 'here',
    ...body,
  });

/** Says for a while what the operator's settings say. */
async function withSettings(changes: Partial<typeof app.platform.settings>, work: () => Promise<void>): Promise<void> {
  const { settings } = app.platform;
  const before = { ...settings };
  Object.assign(settings, changes);
  try {
    await work();
  } finally {
    Object.assign(settings, before);
  }
}

const rules = (text: string): OrganizationRules => new OrganizationRules(text, () => true, 'anything');

describe('a cluster on the host runtime', () => {
  test('is for the first organization; every other one is told which setting decides', async () => {
    const first = await app.organization('first');
    const other = await app.organization('other');
    const body = { runtime: 'host', node_id: await makeNode() };
    expect((await makeCluster(first, body)).status).toBe(201);
    const refused = await makeCluster(other, body);
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ field: 'runtime' }] } });
    expect(refused.body.message).toContain('allowed: docker, kubernetes, fake');
    expect(refused.body.message).toContain('QUARTERDECK_ORGANIZATION_RUNTIMES');
    expect((await makeCluster(other, { ...body, runtime: 'docker' })).status).toBe(201);
  });

  test('stays out of reach when the first organization is gone', async () => {
    const first = await app.db.selectFrom('installation').select('first_organization_id').executeTakeFirstOrThrow();
    await app.db.deleteFrom('organization').where('id', '=', first.first_organization_id).execute();
    const other = await app.organization();
    expect((await makeCluster(other, { runtime: 'host', node_id: await makeNode() })).status).toBe(400);
  });

  test('is for an organization that a rule of its own names', async () => {
    const named = await app.organization();
    const node = await makeNode();
    await withSettings({ organizationRuntimes: rules(`*=docker;${named.organizationId}=host`) }, async () => {
      expect((await makeCluster(named, { runtime: 'host', node_id: node })).status).toBe(201);
      expect((await makeCluster(named, { runtime: 'docker', node_id: node })).status).toBe(400);
    });
  });
});

describe('machines', () => {
  test('that the operator keeps from an organization are refused, and never told by name', async () => {
    const admin = await app.organization();
    const [own, foreign] = [await makeNode(), await makeNode()];
    await withSettings({ organizationNodes: rules(`*=;${admin.organizationId}=${own}`) }, async () => {
      expect(await makeCluster(admin, { runtime: 'docker', node_id: foreign })).toMatchObject({ status: 400 });
      expect((await makeCluster(admin, { runtime: 'docker' })).body).toMatchObject({ node_id: own });
    });
    const unsaid = await makeCluster(admin, { runtime: 'docker' });
    expect(unsaid.status).toBe(400);
    expect(unsaid.body.message).toContain(own);
    expect(unsaid.body.message).not.toContain('machine-');
  });
});

describe('a setting that is narrowed later holds for', () => {
  test('an edit of the cluster', async () => {
    const admin = await app.organization();
    const cluster = ok(await makeCluster(admin, { runtime: 'docker', node_id: await makeNode() }), 201);
    const edit = { name: cluster.name, cloud_provider: 'ON_PREMISE', region: 'there' };
    await withSettings({ organizationRuntimes: rules('*=kubernetes') }, async () => {
      const answer = await admin.put(`/organization/${admin.organizationId}/cluster/${cluster.id}`, edit);
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ field: 'runtime' }] } });
      expect((await admin.delete(`/organization/${admin.organizationId}/cluster/${cluster.id}`)).status).toBe(204);
    });
  });

  test('deployments that are requested or wait, but never for what takes things down', async () => {
    const admin = await app.organization();
    const { environment, application } = await makeExampleOn(admin);
    ok(await admin.post(`/environment/${environment.id}/deploy?wait=30`), 200);
    expect(await stateOf(admin, application.id)).toBe('DEPLOYED');
    await withSettings({ organizationRuntimes: rules('*=docker') }, async () => {
      ok(await admin.post(`/environment/${environment.id}/deploy?wait=30`), 200);
      await expect.poll(() => stateOf(admin, application.id)).toBe('DEPLOYMENT_ERROR');
      const log = ok(await admin.get(`/environment/${environment.id}/logs`), 200);
      expect(JSON.stringify(log)).toContain('QUARTERDECK_ORGANIZATION_RUNTIMES');
      ok(await admin.post(`/environment/${environment.id}/stop?wait=30`), 200);
      await expect.poll(() => stateOf(admin, application.id)).toBe('STOPPED');
    });
  });
});

const stateOf = async (admin: Actor, id: string): Promise<string> =>
  ok(await admin.get(`/application/${id}/status`), 200).state;

async function makeExampleOn(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: `p ${newId()}` }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
  const body = { name: 'hello', git_repository: { url: EXAMPLE, branch: 'HEAD' }, dockerfile_path: 'Dockerfile' };
  const application = ok(await admin.post(`/environment/${environment.id}/application`, body), 201);
  return { environment, application };
}
