import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { newId } from '#kernel/ids.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { makeToken } from '#platform/access/tokens.ts';
import { sql } from '#platform/database/index.ts';
import { createServer } from '#platform/http/server.ts';
import { useApp, type Actor } from '#test/harness/app.ts';

const statements: string[] = [];
const app = useApp({}, {}, (text) => statements.push(text));

/** Server of another process on the same database, whose clock can be set. */
let replica: FastifyInstance;
let now: Date;
beforeAll(() => {
  replica = replicaWith(0);
});
afterAll(() => replica.close());
beforeEach(() => {
  now = new Date();
});

const replicaWith = (limit: number): FastifyInstance =>
  createServer({
    platform: { ...app.platform, clock: { now: () => now } },
    sessions: null,
    limiter: new RateLimiter(app.db, limit),
    routes: allRoutes(),
    log: app.platform.log,
  });

async function ask(server: FastifyInstance, token: string, url: string, method: 'GET' | 'PUT' = 'GET', body?: object) {
  const answer = await server.inject({
    method,
    url,
    headers: { authorization: `Token ${token}` },
    ...(body ? { payload: body } : {}),
  });
  return { status: answer.statusCode, headers: answer.headers, body: answer.body ? answer.json() : undefined };
}

interface Place {
  admin: Actor;
  /** Token of a member who created no other member. */
  token: string;
  tokenId: string;
  userId: string;
  projectId: string;
}

/** A project and a member's token that the replica remembers. */
async function givenRemembered(scope = 'ADMIN', server = replica): Promise<Place> {
  const admin = await app.organization();
  const projectId = (await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' })).body
    .id as string;
  const userId = newId();
  await app.db.insertInto('user_account').values({ id: userId, subject: userId, email_verified: false }).execute();
  await sql`insert into member (organization_id, user_id, role_id)
    select organization_id, ${userId}, id from role where organization_id = ${admin.organizationId} and name = 'admin'`.execute(
    app.db,
  );
  const tokenId = newId();
  const { token, hash } = makeToken(tokenId);
  await app.db
    .insertInto('api_token')
    .values({
      id: tokenId,
      organization_id: admin.organizationId,
      name: 't',
      scope,
      secret_hash: hash,
      created_by: userId,
    })
    .execute();
  expect((await ask(server, token, `/project/${projectId}`)).status).toBe(200);
  return { admin, token, tokenId, userId, projectId };
}

describe('a caller who was here before', () => {
  test('costs one statement, which reads what is asked for', async () => {
    const { token, projectId } = await givenRemembered();
    statements.length = 0;
    expect((await ask(replica, token, `/project/${projectId}`)).status).toBe(200);
    expect(statements).toHaveLength(1);
    expect(statements[0]).toContain('from "project"');
  });

  test.each([
    ['what is there', (place: Place) => `/project/${place.projectId}`],
    ['what is not there', () => `/project/${newId()}`],
    ['a malformed id', () => '/project/x'],
    ['the organization', (place: Place) => `/organization/${place.admin.organizationId}`],
    ['a list', (place: Place) => `/project/${place.projectId}/environment`],
    ['what needs a token only', () => '/organization'],
  ])('is refused as soon as another process has revoked the token, whatever they ask for: %s', async (_what, urlOf) => {
    const place = await givenRemembered();
    expect(
      (await place.admin.delete(`/organization/${place.admin.organizationId}/apiToken/${place.tokenId}`)).status,
    ).toBe(204);
    expect((await ask(replica, place.token, urlOf(place))).status).toBe(401);
  });

  test('is refused with a revoked token before what they send is looked at', async () => {
    const place = await givenRemembered();
    await place.admin.delete(`/organization/${place.admin.organizationId}/apiToken/${place.tokenId}`);
    expect((await ask(replica, place.token, `/project/${place.projectId}`, 'PUT', { name: 'other' })).status).toBe(401);
    expect((await ask(replica, place.token, `/project/${place.projectId}`, 'PUT', { wrong: 1 })).status).toBe(401);
    expect((await place.admin.get(`/project/${place.projectId}`)).body.name).toBe('p');
  });

  test('is refused with another secret', async () => {
    const { token, projectId } = await givenRemembered();
    const wrong = token.slice(0, -4) + (token.endsWith('AAAA') ? 'BBBB' : 'AAAA');
    expect((await ask(replica, wrong, `/project/${projectId}`)).status).toBe(401);
  });

  test('is refused when the time of the token is over', async () => {
    const { token, tokenId, projectId } = await givenRemembered();
    const url = `/project/${projectId}`;
    await app.db
      .updateTable('api_token')
      .set({ expires_at: new Date(now.getTime() + 60_000) })
      .where('id', '=', tokenId)
      .execute();
    expect((await ask(replica, token, url)).status).toBe(200);
    now = new Date(now.getTime() + 61_000);
    expect((await ask(replica, token, url)).status).toBe(401);
  });

  test('is refused once their creator is no member any more', async () => {
    const { token, userId, projectId } = await givenRemembered();
    await app.db.deleteFrom('member').where('user_id', '=', userId).execute();
    expect((await ask(replica, token, `/project/${projectId}`)).status).toBe(401);
  });

  test("may at once do no more than their creator's new role allows", async () => {
    const { admin, token, userId, projectId } = await givenRemembered();
    const edit = () => ask(replica, token, `/project/${projectId}`, 'PUT', { name: 'new' });
    expect((await edit()).status).toBe(200);
    await sql`update member set role_id = (select id from role where organization_id = ${admin.organizationId} and name = 'viewer')
      where user_id = ${userId}`.execute(app.db);
    expect((await edit()).status).toBe(403);
  });

  test('feels a change of the custom role itself, of the token and of the creator', async () => {
    const { admin, token, tokenId, userId, projectId } = await givenRemembered();
    const roles = `/organization/${admin.organizationId}/customRole`;
    const role = (await admin.post(roles, { name: 'r' })).body;
    const forbidding = (forbidden: boolean) => ({
      name: 'r',
      cluster_permissions: [],
      project_permissions: [
        {
          project_id: projectId,
          is_admin: false,
          permissions: ['DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING'].map((environment_type) => ({
            environment_type,
            permission: forbidden ? 'NO_ACCESS' : 'VIEWER',
          })),
        },
      ],
    });
    const status = async () => (await ask(replica, token, `/project/${projectId}`)).status;
    const put = async (forbidden: boolean) =>
      expect((await admin.put(`${roles}/${role.id}`, forbidding(forbidden))).status).toBe(200);

    await app.db.updateTable('member').set({ role_id: role.id }).where('user_id', '=', userId).execute();
    await put(false);
    expect(await status()).toBe(200);
    await put(true);
    expect(await status()).toBe(403);
    await sql`update member set role_id = (select id from role where organization_id = ${admin.organizationId} and name = 'admin')
      where user_id = ${userId}`.execute(app.db);
    expect(await status()).toBe(200);
    await app.db.updateTable('api_token').set({ scope: null, role_id: role.id }).where('id', '=', tokenId).execute();
    expect(await status()).toBe(403);
    await put(false);
    expect(await status()).toBe(200);
  });

  test('finds what is in an organization that their token has joined meanwhile', async () => {
    const { token, tokenId, userId } = await givenRemembered();
    const other = await givenRemembered();
    const status = async () => (await ask(replica, token, `/project/${other.projectId}`)).status;
    expect(await status()).toBe(404);
    await sql`insert into member (organization_id, user_id, role_id)
      select organization_id, ${userId}, id from role where organization_id = ${other.admin.organizationId} and name = 'admin'`.execute(
      app.db,
    );
    expect(await status()).toBe(404);
    await app.db
      .insertInto('api_token_organization')
      .values({ token_id: tokenId, organization_id: other.admin.organizationId })
      .execute();
    expect(await status()).toBe(200);
  });

  test('is refused, and nothing breaks, when the token of a counted request is gone', async () => {
    const counting = replicaWith(2);
    try {
      const { token, tokenId, projectId } = await givenRemembered('ADMIN', counting);
      await app.db.deleteFrom('api_token').where('id', '=', tokenId).execute();
      for (let n = 0; n < 4; n++) expect((await ask(counting, token, `/project/${projectId}`)).status).toBe(401);
    } finally {
      await counting.close();
    }
  });
});
