import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ENVIRONMENT_MODES, type RolePermissions } from '#platform/access/principal.ts';
import { makeToken } from '#platform/access/tokens.ts';
import { json } from '#platform/database/json.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';
import { dataOf, isDeployed, startReplica, streamPath, useStreams } from '#test/harness/stream.ts';

const app = useApp();
useEngine(app);
const { stream } = useStreams(app);

const makeProject = async (actor: Actor): Promise<any> =>
  ok(await actor.post(`/organization/${actor.organizationId}/project`, { name: `p ${newId()}` }), 201);

describe('access to a stream', () => {
  test('is that of the organization: nothing of another one is told, by path, filter or cursor', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { project, environment, application } = await makeExample(admin);
    const deployed = ok(await admin.post(`/application/${application.id}/deploy?wait=40`, {}), 200);
    expect((await stream({ ...stranger, organizationId: admin.organizationId })).status).toBe(404);
    expect((await app.anonymous('GET', streamPath(admin))).status).toBe(401);
    for (const [field, id] of [
      ['projectId', project.id],
      ['environmentId', environment.id],
      ['serviceId', application.id],
      ['deploymentRequestId', deployed.deployment_request_id],
    ]) {
      const [foreign, unknown] = [
        await stranger.get(streamPath(stranger, `?${field}=${id}`)),
        await stranger.get(streamPath(stranger, `?${field}=${newId()}`)),
      ];
      expect(foreign).toMatchObject({ status: 400, body: { errors: [{ field }] } });
      expect(foreign.body).toEqual(unknown.body);
      expect((await admin.get(streamPath(admin, `?${field}=${id}`))).status).toBe(200);
    }
    const own = await stream(admin);
    const foreign = await stream(stranger, { lastId: '0'.repeat(12) + '.0.0' });
    await foreign.until(1); // The line of the cursor is another one: reset.
    const spy = await stream(stranger, { lastId: own.begin });
    await makeProject(admin);
    const seen = await makeProject(stranger);
    await own.until(1);
    await spy.until((events) => events.some(({ data }) => data.target_id === seen.id));
    for (const client of [spy, foreign])
      for (const { event, data } of client.events) if (event === 'audit') expect(data.target_id).toBe(seen.id);
  });

  test('of a custom role leaves out what it has no access to, also of what is gone', async () => {
    const admin = await app.organization();
    const [shown, hidden] = [await makeExample(admin), await makeExample(admin)];
    const token = await guestToken(admin, hidden.project.id, ['PRODUCTION'], [shown.project.id]);
    const guest = await stream({ organizationId: admin.organizationId, token });
    for (const { application } of [hidden, shown])
      ok(await admin.post(`/application/${application.id}/deploy?wait=40`, {}), 200);
    await guest.until(isDeployed);
    // What was made shortly before may be told as well, of the project without an environment.
    const environments = guest.events.flatMap(({ data }) => data.environment_id ?? []);
    expect(new Set(environments)).toEqual(new Set([shown.environment.id]));
    ok(await admin.delete(`/environment/${hidden.environment.id}`), 204);
    const marker = shown.project;
    ok(await admin.put(`/project/${marker.id}`, { name: `p ${newId()}` }), 200);
    await guest.until((events) => events.some(({ data }) => data.target_id === marker.id));
    const all = await stream(admin, { lastId: guest.begin });
    await all.until((events) => events.some(({ data }) => data.target_id === marker.id));
    const again = await stream({ organizationId: admin.organizationId, token }, { lastId: guest.begin });
    await again.until((events) => events.some(({ data }) => data.target_id === marker.id));
    expect(all.events.filter(({ data }) => data.environment_id === hidden.environment.id).length).toBeGreaterThan(5);
    for (const client of [guest, again])
      expect(client.events.filter(({ data }) => data.environment_id === hidden.environment.id)).toEqual([]);
    expect(
      await app.anonymous('GET', streamPath(admin, `?environmentId=${hidden.environment.id}`), undefined, {
        authorization: `Token ${token}`,
      }),
    ).toMatchObject({ status: expect.toSatisfy((status: number) => status === 403 || status === 400) });
  });

  test('by a policy leaves out what the policy does not allow', async () => {
    const admin = await app.organization();
    const [shown, hidden] = [await makeExample(admin), await makeExample(admin)];
    const policy = ok(
      await admin.post(`/organization/${admin.organizationId}/policyApiToken`, {
        name: 'one project',
        opa_policy: `package p
          default allow := false
          allow if input.action == "event.read"
          allow if input.project_id == "${shown.project.id}"`,
      }),
      201,
    );
    const guest = await stream({ organizationId: admin.organizationId, token: policy.token });
    for (const { application } of [hidden, shown])
      ok(await admin.post(`/application/${application.id}/deploy?wait=40`, {}), 200);
    await guest.until(isDeployed);
    const told = (name: string) => new Set(dataOf(guest.events, name).map(({ project_id }) => project_id));
    for (const name of ['deployment', 'service-state', 'step']) expect(told(name)).toEqual(new Set([shown.project.id]));
    expect(told('audit')).toEqual(new Set([shown.project.id, hidden.project.id]));
    const token = { authorization: `Token ${policy.token}` };
    const answers = [shown, hidden].map(({ project }) =>
      app.anonymous('GET', streamPath(admin, `?projectId=${project.id}`), undefined, token),
    );
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 403]);
  });

  test('that ends, ends the stream, on every process', async () => {
    const admin = await app.organization();
    const other = await startReplica(app);
    try {
      const made = ok(
        await admin.post(`/organization/${admin.organizationId}/apiToken`, { name: 'revoked', scope: 'READ' }),
        201,
      );
      const expiring = await tokenUntil(admin, new Date(Date.now() + 1_500));
      const revoked = { organizationId: admin.organizationId, token: made.token as string };
      const clients = [
        await stream(revoked),
        await stream(revoked, { base: other.base }),
        await stream({ organizationId: admin.organizationId, token: expiring }),
      ];
      ok(await admin.delete(`/organization/${admin.organizationId}/apiToken/${made.id}`), 204);
      await Promise.all(clients.map((client) => client.ended));
      for (const client of clients) expect(client.events.at(-1)).toMatchObject({ event: 'end', data: { status: 401 } });
      expect((await stream(revoked)).status).toBe(401);
    } finally {
      await other.close();
    }
  });

  test('that changes, changes what an open stream tells', async () => {
    const admin = await app.organization();
    const { project } = await makeExample(admin);
    const open = await makeProject(admin);
    const token = await guestToken(admin, project.id, [], [open.id]);
    const guest = await stream({ organizationId: admin.organizationId, token });
    const tells = async (): Promise<boolean> => {
      ok(await admin.put(`/project/${project.id}`, { name: `p ${newId()}` }), 200);
      const before = guest.events.length;
      ok(await admin.put(`/project/${open.id}`, { name: `p ${newId()}` }), 200);
      const events = await guest.until((all) => all.slice(before).some(({ data }) => data.target_id === open.id));
      return events.slice(before).some(({ data }) => data.project_id === project.id);
    };
    expect(await tells()).toBe(true);
    await app.db
      .updateTable('role')
      .set({ permissions: json(permissionsOf(project.id, [...ENVIRONMENT_MODES], [open.id])) })
      .where('organization_id', '=', admin.organizationId)
      .where('name', '=', 'guest')
      .execute();
    await expect.poll(tells).toBe(false);
  });
});

/** Returns the permissions of a role that has no access to some modes of a project. */
const permissionsOf = (project_id: string, modes: string[], open: string[]): RolePermissions => ({
  clusters: [],
  projects: [
    {
      project_id,
      is_admin: false,
      permissions: modes.map((environment_type) => ({ environment_type, permission: 'NO_ACCESS' })),
    },
    ...open.map((id) => ({ project_id: id, is_admin: false, permissions: [] })),
  ],
});

async function guestToken(admin: Actor, projectId: string, modes: string[], open: string[] = []): Promise<string> {
  const [role, id] = [newId(), newId()];
  const { token, hash } = makeToken(id);
  const common = { organization_id: admin.organizationId, name: 'guest' };
  await app.db
    .insertInto('role')
    .values({
      ...common,
      id: role,
      built_in: false,
      permissions: json(permissionsOf(projectId, modes, open)),
    })
    .execute();
  await app.db
    .insertInto('api_token')
    .values({ ...common, id, role_id: role, secret_hash: hash, created_by: admin.userId })
    .execute();
  return token;
}

async function tokenUntil(admin: Actor, expires: Date): Promise<string> {
  const id = newId();
  const { token, hash } = makeToken(id);
  await app.db
    .insertInto('api_token')
    .values({
      id,
      organization_id: admin.organizationId,
      name: 'expiring',
      scope: 'READ',
      secret_hash: hash,
      created_by: admin.userId,
      expires_at: expires,
    })
    .execute();
  return token;
}
