import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { usePretendedProvider } from '#test/harness/git-provider.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const root = makeRepositoryRoot();
afterAll(() => root.remove());
const provider = usePretendedProvider();
const app = useApp({
  QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8',
  QUARTERDECK_LOCAL_GIT_ROOTS: root.folder,
});

const KINDS = [
  ['GITHUB', 'github', 'https://github.com/', (n: number) => String(n)],
  ['GITLAB', 'gitlab', 'https://gitlab.com/', (n: number) => String(n)],
  ['BITBUCKET', 'bitbucket', 'https://bitbucket.org/', (n: number) => `{${n}}`],
] as const;

let admin: Actor;
beforeEach(async () => {
  admin = await app.organization();
  provider.repositories = [
    { id: 1, owner: 'acme', name: 'shop', branches: ['main', 'a/b', 'c', 'd', 'e'] },
    { id: 2, owner: 'acme', name: 'secret', isPrivate: true, branches: ['trunk'] },
    { id: 3, owner: 'other', name: 'empty', branches: [] },
  ];
});

const of = (actor: Actor) => `/organization/${actor.organizationId}`;
const makeToken = async (type: string, more: object = {}, actor = admin) =>
  ok(
    await actor.post(`${of(actor)}/gitToken`, {
      name: 'bot',
      type,
      token: 'good',
      git_api_url: provider.origin,
      ...more,
    }),
    201,
  ).id as string;
const names = (body: any): string[] => body.results.map((one: { name: string }) => one.name);

describe.each(KINDS)('%s', (type, path, web, idOf) => {
  const repositories = () => `${of(admin)}/account/${path}/repository`;
  const branches = (name: string) => `${repositories()}/branch?name=${encodeURIComponent(name)}`;

  test('is asked for all pages of the repositories that the token may see', async () => {
    const gitTokenId = await makeToken(type);
    const answer = ok(await admin.get(`${repositories()}?gitTokenId=${gitTokenId}`), 200);
    expect(answer.results).toEqual([
      { id: idOf(1), name: 'acme/shop', url: `${web}acme/shop.git`, default_branch: 'main', is_private: false },
      { id: idOf(2), name: 'acme/secret', url: `${web}acme/secret.git`, default_branch: 'trunk', is_private: true },
      { id: idOf(3), name: 'other/empty', url: `${web}other/empty.git`, is_private: false },
    ]);
    expect(answer.pagination.total_count).toBe(3);
    const page = ok(await admin.get(`${repositories()}?page=2&page_size=2`), 200);
    expect(names(page)).toEqual(['other/empty']);
  });

  test('is asked for all pages of the branches of a repository', async () => {
    await makeToken(type);
    const answer = ok(await admin.get(branches('acme/shop')), 200);
    expect(answer.results).toEqual(['main', 'a/b', 'c', 'd', 'e'].map((name) => ({ name })));
    expect(ok(await admin.get(branches('other/empty')), 200).results).toEqual([]);
  });

  test('that has no such repository for the token is told under its name', async () => {
    await makeToken(type);
    const { errors } = ok(await admin.get(branches('acme/nothing')), 400);
    expect(errors).toEqual([{ field: 'name', message: expect.stringContaining('has no repository acme/nothing') }]);
  });

  test.each([
    ['missing', ''],
    ['without owner', 'shop'],
    ['leading elsewhere', '../user/shop'],
    ['leading up', 'a/..'],
  ])('is not asked for a name that is %s', async (_what, name) => {
    await makeToken(type);
    expect(ok(await admin.get(branches(name)), 400).errors[0].field).toBe('name');
    expect(provider.requests).toEqual([]);
  });

  test('that does not accept the token is told under the token', async () => {
    const gitTokenId = await makeToken(type, { token: 'a-token-that-is-gone' });
    for (const url of [`${repositories()}?gitTokenId=${gitTokenId}`, branches('acme/shop')]) {
      const { errors } = ok(await admin.get(url), 400);
      expect(errors).toEqual([{ field: 'gitTokenId', message: expect.stringContaining('does not accept') }]);
      expect(JSON.stringify(errors)).not.toContain('a-token-that-is-gone');
    }
  });

  test('whose requests are spent for now is 502, and says when it is worth asking again', async () => {
    await makeToken(type);
    const reset = Math.floor(Date.now() / 1000) + 90;
    const cases: [number, Record<string, string>, RegExp][] = [
      [429, { 'retry-after': '30' }, /^30$/],
      [429, { 'ratelimit-reset': String(reset) }, /^(8\d|90)$/],
      [403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) }, /^(8\d|90)$/],
    ];
    for (const [status, headers, seconds] of cases) {
      provider.instead = () => ({ status, headers });
      const answer = await admin.get(repositories());
      expect(ok(answer, 502).message).toContain('takes no more requests');
      expect(String(answer.headers['retry-after'])).toMatch(seconds);
    }
  });

  test.each([
    ['has a fault', { status: 500 }, 'answered 500'],
    ['does not speak JSON', { status: 200, body: '<html>' }, 'did not answer with JSON'],
    ['lists something else', { status: 200, body: { message: 'hello' } }, 'something else than a list'],
    ['lists what is none', { status: 200, body: type === 'BITBUCKET' ? { values: [{}] } : [{}] }, 'something else'],
  ])('that %s is 502', async (_what, instead, message) => {
    await makeToken(type, { workspace: 'acme' });
    provider.instead = () => instead;
    expect(ok(await admin.get(repositories()), 502).message).toContain(message);
  });

  test('that does not let the token list is told under the token', async () => {
    await makeToken(type);
    provider.instead = () => ({ status: 403 });
    expect(ok(await admin.get(repositories()), 400).errors[0]).toMatchObject({ field: 'gitTokenId' });
  });

  test('that cannot be reached is 502', async () => {
    await makeToken(type, { git_api_url: 'http://127.0.0.1:9' });
    expect(ok(await admin.get(repositories()), 502).message).toContain('127.0.0.1:9 could not be reached');
  });

  test('gets the token, and nobody else does: neither by a redirect nor by the address of a next page', async () => {
    const elsewhere = 'http://127.0.0.1:9';
    await makeToken(type);
    provider.instead = () => ({ status: 302, headers: { location: `${elsewhere}/user/repos` } });
    expect(ok(await admin.get(repositories()), 400).message).toContain(`redirects to ${elsewhere}`);
    provider.instead = undefined;
    provider.namesItself = elsewhere;
    expect(names(ok(await admin.get(branches('acme/shop')), 200))).toHaveLength(5);
    const sent = provider.requests.map(({ headers }) => headers.authorization ?? headers['private-token']);
    expect(new Set(sent)).toEqual(new Set([type === 'GITLAB' ? 'good' : 'Bearer good']));
  });

  test('that has renamed a repository is followed to where it is now', async () => {
    await makeToken(type);
    provider.instead = (at) => {
      const moved = at.replace('old', 'shop');
      return moved === at ? undefined : { status: 301, headers: { location: moved } };
    };
    expect(names(ok(await admin.get(branches('acme/old')), 200))).toHaveLength(5);
  });

  test('is followed through twenty pages and no further', async () => {
    await makeToken(type);
    provider.pageSize = 1;
    provider.repositories[0]!.branches = Array.from({ length: 30 }, (_, n) => `b${n}`);
    expect(names(ok(await admin.get(branches('acme/shop')), 200))).toHaveLength(20);
  });

  test('is asked with the oldest token that has not expired, and not at all where there is none', async () => {
    expect(ok(await admin.get(repositories()), 200).results).toEqual([]);
    expect(ok(await admin.get(branches('acme/shop')), 200).results).toEqual([]);
    await makeToken(type, { token: 'expired', expired_at: '2020-01-01T00:00:00Z' });
    await makeToken(type === 'GITHUB' ? 'GITLAB' : 'GITHUB', { token: 'of another' });
    expect(ok(await admin.get(repositories()), 200).results).toEqual([]);
    expect(provider.requests).toEqual([]);
    await makeToken(type);
    await makeToken(type, { token: 'newer' });
    expect(ok(await admin.get(repositories()), 200).results).toHaveLength(3);
  });

  test('is asked by a person for the organizations that they are in', async () => {
    await makeToken(type, { token: 'theirs' }, await app.organization());
    expect(ok(await admin.get(`/account/${path}/repository`), 200).results).toEqual([]);
    await makeToken(type);
    const reader = await admin.withScope('READ');
    expect(ok(await reader.get(`/account/${path}/repository`), 200).results).toHaveLength(3);
    const own = `/account/${path}/repository/branch`;
    expect(names(ok(await reader.get(`${own}?name=acme/secret`), 200))).toEqual(['trunk']);
    ok(await reader.get(own), 400);
  });

  test('is not asked with a token of another provider or organization', async () => {
    const other = await app.organization();
    const theirs = await makeToken(type, {}, other);
    const another = await makeToken(type === 'GITHUB' ? 'GITLAB' : 'GITHUB');
    for (const id of [theirs, newId(), another]) {
      const answer = await admin.get(`${repositories()}?gitTokenId=${id}`);
      expect(ok(answer, 400).errors[0].field).toBe('gitTokenId');
    }
    ok(await admin.get(`${repositories()}?gitTokenId=nonsense`), 400);
    ok(await other.get(repositories()), 404);
    expect(provider.requests).toEqual([]);
  });
});

test('of Bitbucket a token with a workspace is asked for that workspace only', async () => {
  await makeToken('BITBUCKET', { workspace: 'other' });
  expect(names(ok(await admin.get(`${of(admin)}/account/bitbucket/repository`), 200))).toEqual(['other/empty']);
  expect(provider.requests.map(({ path }) => path.split('?')[0])).toEqual(['/2.0/repositories/other']);
});

test('groups of GitLab nest', async () => {
  await makeToken('GITLAB');
  provider.repositories = [{ id: 9, owner: 'acme/web/team', name: 'shop', branches: ['main'] }];
  const url = `${of(admin)}/account/gitlab/repository/branch?name=acme/web/team/shop`;
  expect(names(ok(await admin.get(url), 200))).toEqual(['main']);
  expect(provider.requests.at(-1)!.path).toContain('/projects/acme%2Fweb%2Fteam%2Fshop/');
});

describe('providers that can be asked', () => {
  test('are the git tokens that have not expired', async () => {
    const [first, second] = [await makeToken('GITHUB'), await makeToken('BITBUCKET', { workspace: 'acme' })];
    await makeToken('GITLAB', { expired_at: '2020-01-01T00:00:00Z' });
    const expected = [
      { id: first, name: 'GITHUB', owner: 'bot', use_bot: false },
      { id: second, name: 'BITBUCKET', owner: 'acme', use_bot: false },
    ];
    expect(ok(await admin.get(`${of(admin)}/account/gitAuthProvider`), 200).results).toEqual(expected);
    expect(ok(await admin.get('/account/gitAuthProvider'), 200).results).toEqual(expected);
    const other = await app.organization();
    expect(ok(await other.get('/account/gitAuthProvider'), 200).results).toEqual([]);
    ok(await other.get(`${of(admin)}/account/gitAuthProvider`), 404);
    expect(provider.requests).toEqual([]);
  });
});

describe('the addresses of the APIs', () => {
  const local = usePretendedProvider();
  const elsewhere = useApp({
    QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8',
    QUARTERDECK_GITHUB_API_URL: 'http://127.0.0.1:9/github',
    QUARTERDECK_GITLAB_API_URL: 'http://127.0.0.1:9/gitlab',
    QUARTERDECK_BITBUCKET_API_URL: 'http://127.0.0.1:9/bitbucket',
  });

  test('are settings, which tokens take that name none', async () => {
    const other = await elsewhere.organization();
    for (const [type, path] of KINDS) {
      await makeToken(type, { git_api_url: undefined }, other);
      const { message } = ok(await other.get(`${of(other)}/account/${path}/repository`), 502);
      expect(message).toContain('127.0.0.1:9');
    }
    expect(local.requests).toEqual([]);
  });
});

describe('the directories of a repository', () => {
  const tree = { 'README.md': 'r', 'apps/api/src/a.ts': 'a', 'apps/web/b.ts': 'b', 'docs/c.md': 'c' };
  const list = (body: object, actor = admin) =>
    actor.post(`${of(actor)}/listDirectoriesFromGitRepository`, { provider: 'GITHUB', ...body });

  test('are listed at any depth, of the default branch or the named one', async () => {
    const repository = root.make();
    repository.commit(tree);
    const { url } = repository;
    expect(ok(await list({ url }), 200)).toEqual({ results: ['/apps', '/docs'] });
    for (const root_path of ['apps', '/apps', '/apps/'])
      expect(ok(await list({ url, root_path }), 200).results).toEqual(['/apps/api', '/apps/web']);
    expect(ok(await list({ url, root_path: '/apps/web' }), 200).results).toEqual([]);
    repository.git('checkout', '--quiet', '-b', 'next');
    repository.commit({ 'new/a': 'a' });
    repository.git('checkout', '--quiet', 'main');
    expect(ok(await list({ url, branch: 'next' }), 200).results).toEqual(['/apps', '/docs', '/new']);
    expect(ok(await list({ url, branch: 'main' }), 200).results).toEqual(['/apps', '/docs']);
  });

  test('are read from a server with the git token of that server', async () => {
    root.make('served').commit(tree);
    await using server = await startGitServer({
      root: root.folder,
      credentials: { username: 'oauth2', password: 'good' },
    });
    const git_token_id = await makeToken('GITLAB', { git_api_url: server.url });
    const url = `${server.url}/served`;
    expect(ok(await list({ url, git_token_id, provider: 'GITLAB' }), 200).results).toEqual(['/apps', '/docs']);
    expect(ok(await list({ url, provider: 'GITLAB' }), 400).message).toContain('without credentials');
    const elsewhere = await makeToken('GITLAB');
    expect(ok(await list({ url, git_token_id: elsewhere }), 400).message).toContain('The git token is for');
  });

  test.each([
    ['url', { url: 'nonsense' }],
    ['root_path', { root_path: '../..' }],
    ['root_path', { root_path: 'nothing/here' }],
    ['root_path', { root_path: 'README.md' }],
    ['git_token_id', { git_token_id: newId() }],
    ['provider', { provider: 'SVN' }],
  ])('are refused for a wrong %s: %j', async (field, wrong) => {
    const repository = root.make();
    repository.commit(tree);
    const answer = ok(await list({ url: repository.url, ...wrong }), 400);
    expect(answer.errors.map((one: { field: string }) => one.field)).toEqual([field]);
    expect(answer.message).not.toMatch(/exist/);
  });

  test('of no branch and of no repository are 400, of a server that is away 502', async () => {
    const { url } = root.make();
    ok(await list({ url }), 400);
    ok(await list({ url, branch: 'none' }), 400);
    ok(await list({ url: `${root.folder}/none` }), 400);
    ok(await list({ url: 'http://127.0.0.1:9/a/b' }), 502);
  });

  test('are read by those who could make a service of them, in their organization', async () => {
    const { url } = root.make();
    ok(await list({ url }, await admin.withScope('DEPLOY')), 403);
    const other = await app.organization();
    ok(await other.post(`${of(admin)}/listDirectoriesFromGitRepository`, { url, provider: 'GITHUB' }), 404);
  });
});
