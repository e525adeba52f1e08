import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { createCommitStatusLoop } from '#services/pushes/commit-status.ts';
import { commit, usePushes } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp({
  QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8',
  QUARTERDECK_BASE_URL: 'https://deck.acme.net',
});
const { environmentOf, applicationIn, webhookOf, push, worker, applied } = usePushes(app);
const [a, b] = [commit('a'), commit('b')];

/** Statuses that the pretended provider was sent, by path. */
let sent: [string, any][] = [];
let answer = 201;
let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    sent.push([request.url!, JSON.parse(Buffer.concat(chunks).toString())]);
    response.writeHead(answer).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const loops = new Set<ReturnType<typeof createCommitStatusLoop>>();
afterEach(async () => {
  await Promise.all([...loops].map((loop) => loop.stop()));
  loops.clear();
  sent = [];
  answer = 201;
});

async function place(type = 'GITHUB', path = '') {
  const admin = await app.organization();
  const body = { name: newId(), type, token: 'good', git_api_url: `${origin}${path}` };
  const { id: git_token_id } = ok(await admin.post(`/organization/${admin.organizationId}/gitToken`, body), 201);
  const environment = await environmentOf(admin);
  const git_repository = { url: `${origin}/acme/shop.git`, branch: 'main', git_token_id };
  const web = await applicationIn(admin, environment, { name: 'web', git_repository });
  const hook = await webhookOf(admin, `${new URL(origin).host}/acme/shop`);
  worker();
  return { admin, environment, web, hook };
}

const rowsOf = ({ organizationId }: Actor) =>
  app.db
    .selectFrom('commit_status')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('created_at')
    .execute();
function tell() {
  const loop = createCommitStatusLoop(app.platform, newId());
  loops.add(loop);
  return loop.look();
}
const end = (environment: string, state: string) =>
  sql`update deployment_service set state = ${state}, ended_at = now() where environment_id = ${environment}`.execute(
    app.db,
  );

test.each([
  ['GITHUB', '', `/api/v3/repos/acme/shop/statuses/${b}`, ['pending', 'success']],
  ['GITHUB', '/api/v1', `/api/v1/repos/acme/shop/statuses/${b}`, ['pending', 'success']],
  ['GITLAB', '', `/api/v4/projects/acme%2Fshop/statuses/${b}`, ['pending', 'success']],
  ['BITBUCKET', '', `/2.0/repositories/acme/shop/commit/${b}/statuses/build`, ['INPROGRESS', 'SUCCESSFUL']],
])('the commit of a push shows at %s%s how its deployment goes on', async (type, path, address, states) => {
  const { admin, environment, hook } = await place(type, path);
  await push(hook, { before: a, after: b });
  await applied(admin);
  await tell();
  await expect.poll(async () => (await rowsOf(admin))[0]?.reported).toBe('pending');
  // The same state is told once.
  await tell();
  await end(environment, 'DEPLOYED');
  await tell();
  await expect.poll(async () => (await rowsOf(admin))[0]?.reported).toBe('success');
  expect(sent.map(([url, { state }]) => [url, state])).toEqual(states.map((state) => [address, state]));
  const url = `https://deck.acme.net/environment/${environment}/logs`;
  expect(sent[1]![1]).toMatchObject({
    description: 'web runs in dev.',
    [type === 'BITBUCKET' ? 'url' : 'target_url']: url,
  });
});

test('a commit that a newer one replaces, and one that fails, are told so', async () => {
  const { admin, environment, hook } = await place();
  await push(hook, { before: 'c'.repeat(40), after: a });
  await applied(admin);
  await tell();
  await expect.poll(async () => (await rowsOf(admin))[0]?.reported).toBe('pending');
  await push(hook, { before: a, after: b });
  await applied(admin);
  await tell();
  await expect
    .poll(async () => (await rowsOf(admin)).map(({ reported }) => reported))
    .toEqual(['cancelled', 'pending']);
  await end(environment, 'BUILD_ERROR');
  await tell();
  await expect
    .poll(async () => (await rowsOf(admin)).map(({ reported }) => reported))
    .toEqual(['cancelled', 'failure']);
});

test('a token without the permission is told once, and a provider that is away is asked again', async () => {
  const { admin, hook } = await place();
  answer = 503;
  await push(hook, { before: 'c'.repeat(40), after: a });
  await applied(admin);
  await tell();
  await expect
    .poll(async () => (await rowsOf(admin))[0])
    .toMatchObject({ status: 'WAITING', attempts: 1, error: null, claim_token: null });
  answer = 403;
  await sql`update commit_status set due_at = now()`.execute(app.db);
  await tell();
  await expect
    .poll(async () => (await rowsOf(admin))[0])
    .toMatchObject({
      status: 'ENDED',
      error: 'The git token may not write commit statuses of acme/shop: give it that permission.',
    });
  await tell();
  expect(sent).toHaveLength(2);
});

test('a token is not used for a repository at another port or protocol of its host', async () => {
  const { admin, hook } = await place();
  await push(hook, { before: 'c'.repeat(40), after: a });
  await applied(admin);
  // A row from before the origin was recorded: the default port of https.
  await sql`update commit_status set origin = null where organization_id = ${admin.organizationId}`.execute(app.db);
  await tell();
  await expect
    .poll(async () => (await rowsOf(admin))[0])
    .toMatchObject({ status: 'ENDED', error: 'The git token is gone, or is not for https://127.0.0.1.' });
  expect(sent).toEqual([]);
});
