import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { toCommitView, toContributorViews } from '#services/capabilities/service/commits/views.ts';
import type { GitSource } from '#services/sources/git.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const root = makeRepositoryRoot();
afterAll(() => root.remove());
const app = useApp({
  QUARTERDECK_LOCAL_GIT_ROOTS: root.folder,
  QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8',
});

async function makeApplication(admin: Actor, repository: object) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
  const body = { name: 'web', git_repository: repository };
  return ok(await admin.post(`/environment/${environment.id}/application`, body), 201).id as string;
}

describe('commits of a service', () => {
  test('are those of its branch, newest first, in pages too', async () => {
    const admin = await app.organization();
    const repository = root.make();
    const first = repository.commit({ 'a.txt': '1' }, { message: 'begin' });
    const second = repository.commit({ 'a.txt': '2' }, { author: 'Grace Hopper', email: 'grace@example.com' });
    repository.git('checkout', '--quiet', '-b', 'other');
    repository.commit({ 'a.txt': '3' });
    const id = await makeApplication(admin, { url: repository.url, branch: 'main' });
    const { results, pagination } = ok(await admin.get(`/application/${id}/commit`), 200);
    expect(results).toEqual([
      {
        created_at: '2026-01-01T00:01:00.000Z',
        git_commit_id: second,
        tag: '',
        message: 'change 2',
        author_name: 'Grace Hopper',
      },
      {
        created_at: '2026-01-01T00:00:00.000Z',
        git_commit_id: first,
        tag: '',
        message: 'begin',
        author_name: 'Ada Lovelace',
      },
    ]);
    expect(pagination).toEqual({ page: 1, page_size: 2, total_count: 2, total_pages: 1 });
    expect(ok(await admin.get(`/application/${id}/commit?page=2&page_size=1`), 200).results).toEqual([results[1]]);
  });

  test('begin after a commit, or are that commit alone, as asked', async () => {
    const admin = await app.organization();
    const repository = root.make();
    const ids = [1, 2, 3].map((number) => repository.commit({ 'a.txt': String(number) })).reverse();
    const id = await makeApplication(admin, { url: repository.url });
    const idsOf = async (query: string) =>
      ok(await admin.get(`/application/${id}/commit?${query}`), 200).results.map(
        (commit: { git_commit_id: string }) => commit.git_commit_id,
      );
    expect(await idsOf(`startId=${ids[0]}`)).toEqual(ids.slice(1));
    expect(await idsOf(`gitCommitId=${ids[1]!.slice(0, 10)}`)).toEqual([ids[1]]);
    expect(await idsOf(`gitCommitId=${'0'.repeat(40)}`)).toEqual([]);
    for (const query of [`startId=${'0'.repeat(40)}`, 'startId=--all', 'gitCommitId=HEAD'])
      expect((await admin.get(`/application/${id}/commit?${query}`)).status, query).toBe(400);
  });

  test('that cannot be had are 502 and say why', async () => {
    const admin = await app.organization();
    const repository = root.make();
    repository.commit({ 'a.txt': '1' });
    const gone = root.make();
    for (const [source, reason] of [
      [{ url: repository.url, branch: 'missing' }, 'has no branch'],
      [{ url: gone.url }, 'is not a folder of this machine that may be used'],
      [{ url: 'http://127.0.0.1:1/acme/shop.git' }, 'cannot be reached'],
      [{ url: 'http://169.254.169.254/acme/shop.git' }, 'may not be called'],
    ] as const) {
      const id = await makeApplication(admin, source);
      if (source.url === gone.url) rmSync(gone.url, { recursive: true });
      const answer = await admin.get(`/application/${id}/commit`);
      expect([answer.status, answer.body.message]).toEqual([502, expect.stringContaining(reason)]);
    }
  });

  test('are not there for another organization', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const id = await makeApplication(admin, { url: root.make().url });
    expect((await stranger.get(`/application/${id}/commit`)).status).toBe(404);
    expect((await stranger.get(`/application/${id}/contributor`)).status).toBe(404);
  });
});

describe('the token of a service', () => {
  let server: Server;
  const seen: (string | undefined)[] = [];
  beforeAll(async () => {
    server = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  test('is opened from the vault and sent to the repository, and stands in no answer', async () => {
    const admin = await app.organization();
    const tokenId = newId();
    const secret = 'token-of-the-test';
    await app.db
      .insertInto('git_token')
      .values({
        id: tokenId,
        organization_id: admin.organizationId,
        name: 'forge',
        type: 'GITLAB',
        git_api_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v4`,
        token: await app.platform.vault.seal(app.db, admin.organizationId, `git_token/${tokenId}/token`, secret),
      })
      .execute();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme/shop.git`;
    const id = await makeApplication(admin, { url, git_token_id: tokenId });
    const answer = await admin.get(`/application/${id}/commit`);
    expect([answer.status, answer.body.message]).toEqual([502, expect.stringContaining('git token')]);
    expect(JSON.stringify(answer.body)).not.toContain(secret);
    expect(seen.some((header) => header === `Basic ${Buffer.from(`oauth2:${secret}`).toString('base64')}`)).toBe(true);
  });
});

describe('contributors of a service', () => {
  test('are the authors of its newest commits, each once', async () => {
    const admin = await app.organization();
    const repository = root.make();
    repository.commit({ 'a.txt': '1' }, { author: 'ada', email: 'ADA@example.com' });
    repository.commit({ 'a.txt': '2' }, { author: 'Grace Brewster Hopper', email: 'grace@example.com' });
    repository.commit({ 'a.txt': '3' });
    const id = await makeApplication(admin, { url: repository.url });
    expect(ok(await admin.get(`/application/${id}/contributor`), 200).results).toEqual([
      {
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:02:00.000Z',
        first_name: 'Ada',
        last_name: 'Lovelace',
        email: 'ada@example.com',
      },
      {
        created_at: '2026-01-01T00:01:00.000Z',
        updated_at: '2026-01-01T00:01:00.000Z',
        first_name: 'Grace Brewster',
        last_name: 'Hopper',
        email: 'grace@example.com',
      },
    ]);
  });

  test('without an e-mail address are told apart by their names', () => {
    const commit = { id: 'a', date: '2026-01-01T00:00:00.000Z', email: '', message: '', tag: '' };
    expect(toContributorViews([{ ...commit, author: 'a' }, { ...commit, author: 'b' }, { ...commit, author: 'a' }]))
      .toHaveLength(2); // prettier-ignore
  });
});

describe('the page of a commit', () => {
  const source = (url: string, provider: GitSource['provider']): GitSource => ({
    url,
    provider,
    owner: 'acme/team',
    name: 'shop',
    branch: 'main',
    root_path: '/',
    git_token_id: null,
  });
  test.each([
    ['https://github.com/acme/team/shop.git', 'GITHUB', 'https://github.com/acme/team/shop/commit/abc'],
    [
      'https://gitlab.acme.net:8443/acme/team/shop',
      'GITLAB',
      'https://gitlab.acme.net:8443/acme/team/shop/-/commit/abc',
    ],
    ['git@bitbucket.org:acme/team/shop.git', 'BITBUCKET', 'https://bitbucket.org/acme/team/shop/commits/abc'],
    ['ssh://git@gitlab.com:2222/acme/team/shop.git', 'GITLAB', 'https://gitlab.com/acme/team/shop/-/commit/abc'],
    ['/srv/shop', 'GITLAB', undefined],
    ['file:///srv/shop', 'GITLAB', undefined],
  ] as const)('of %s is where its provider shows it', (url, provider, wanted) => {
    const commit = { id: 'abc', date: '', author: '', email: '', message: '', tag: '' };
    expect(toCommitView(source(url, provider), commit).commit_page_url).toBe(wanted);
  });
});
