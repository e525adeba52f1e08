import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createHttpClient } from '#platform/http-client/index.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import type { RepositoryRoot, TestRepository } from '#test/harness/repository.ts';
import { Git } from '#runtimes/tools/git/index.ts';
import type { GitSource } from '#runtimes/tools/git/index.ts';
import { isPromising } from '#runtimes/tools/git/promises.ts';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import type { GitServer, GitServerOptions } from '#runtimes/tools/git/testing.ts';

const IDENTITY = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
const CREDENTIALS = { username: 'reader', password: 'token-of-the-reader' };

let root: RepositoryRoot;
let open: GitServer;
let closed: GitServer;
let app: TestRepository;
let commits: string[];
let out: string;

beforeAll(async () => {
  root = makeRepositoryRoot();
  out = mkdtempSync(path.join(tmpdir(), 'git-checkout-'));
  app = root.make('app');
  commits = [
    app.commit({ 'README.md': 'one\n', 'src/main.txt': 'no end of line' }),
    app.commit(
      { 'README.md': 'two\r\n', 'sub/Dockerfile': 'FROM x\n' },
      { message: 'second: "quoted"', author: 'Zoë' },
    ),
    app.commit({ 'README.md': 'three\n' }),
  ];
  app.git(...IDENTITY, 'tag', '-a', 'v1', '-m', 'first', commits[1]!);
  app.git('branch', 'other', commits[0]!);
  app.git('branch', 'v1', commits[0]!);
  open = await startGitServer({ root: root.folder });
  closed = await startGitServer({ root: root.folder, credentials: CREDENTIALS });
});

afterAll(async () => {
  await open[Symbol.asyncDispose]();
  await closed[Symbol.asyncDispose]();
  root.remove();
  rmSync(out, { recursive: true });
});

const { request } = createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] });
const git = () => new Git({ localRoots: [root.folder], request });
const from = (url: string, changes: Partial<GitSource> = {}): GitSource => ({
  url,
  branch: 'main',
  credentials: null,
  signal: new AbortController().signal,
  ...changes,
});

/** Checks out into a new folder. */
async function checkout(source: GitSource, commit: string): Promise<{ folder: string; lines: string[] }> {
  const folder = path.join(mkdtempSync(path.join(out, 'c-')), 'tree');
  const lines: string[] = [];
  await git().checkout(source, commit, folder, (line) => lines.push(line));
  return { folder, lines };
}

describe.each([
  ['a local folder', () => app.url],
  ['http', () => `${open.url}/app`],
])('from %s', (_name, url) => {
  test('the head of a branch is found, and the commit with author and message', async () => {
    expect(await git().resolveHead(from(url()))).toBe(commits[2]);
    expect(await git().resolve(from(url()))).toMatchObject({ id: commits[2], message: 'change 3' });
    expect(await git().resolve(from(url()), commits[1])).toEqual({
      id: commits[1],
      author: 'Zoë',
      email: 'ada@example.com',
      message: 'second: "quoted"',
      date: '2026-01-01T00:01:00.000Z',
      tag: '',
    });
  });

  test('an abbreviated commit is found', async () => {
    expect((await git().resolve(from(url()), commits[0]!.slice(0, 8))).id).toBe(commits[0]);
  });

  test('of a branch and a tag with one name it is the branch; a tag alone is the commit that it stands at', async () => {
    expect(await git().resolveHead(from(url(), { branch: 'v1' }))).toBe(commits[0]);
    expect((await git().resolve(from(url(), { branch: 'v1' }))).id).toBe(commits[0]);
    expect(await git().resolveHead(from(url(), { branch: 'refs/tags/v1' }))).toBe(commits[1]);
    expect((await git().resolve(from(url(), { branch: 'refs/tags/v1' }))).id).toBe(commits[1]);
  });

  test('the newest commits come first, as many as asked for', async () => {
    expect((await git().listCommits(from(url()), 2)).map(({ id }) => id)).toEqual([commits[2], commits[1]]);
    expect(await git().listCommits(from(url()), 100)).toHaveLength(3);
  });

  test('a file is read as it is, byte for byte', async () => {
    const source = from(url(), { branch: 'refs/tags/v1' });
    expect(await git().readFile(source, 'README.md')).toBe('two\r\n');
    expect(await git().readFile(source, '/src/main.txt')).toBe('no end of line');
    expect(await git().readFile(source, 'missing')).toBeUndefined();
    expect(await git().readFile(source, 'src')).toBeUndefined();
    await expect(git().readFile(source, '../../etc/passwd')).rejects.toMatchObject({ code: 'refused' });
  });

  test('the files are listed', async () => {
    expect(await git().listFiles(from(url()))).toEqual(['README.md', 'src/main.txt', 'sub/Dockerfile']);
  });

  test('a commit that is no head is checked out, without anything of git', async () => {
    const { folder, lines } = await checkout(from(url()), commits[1]!);
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual([
      'README.md',
      'src',
      'src/main.txt',
      'sub',
      'sub/Dockerfile',
    ]);
    expect(readFileSync(path.join(folder, 'README.md'), 'utf8')).toBe('two\r\n');
    expect(lines[0]).toBe(`Fetching ${url()} at ${commits[1]}`);
  });

  test('a commit of no branch fails with its name', async () => {
    await expect(checkout(from(url()), 'a'.repeat(40))).rejects.toMatchObject({
      name: 'RuntimeError',
      message: expect.stringContaining(`Commit ${'a'.repeat(40)} is not in branch main of`),
    });
  });

  test('a branch that is not there is told, with those that are', async () => {
    const source = from(url(), { branch: 'mian' });
    const message = expect.stringMatching(/has no branch or tag mian; it has main, other, v1\.$/);
    await expect(git().resolve(source)).rejects.toMatchObject({ code: 'failed', message });
    await expect(git().resolveHead(source)).rejects.toMatchObject({ code: 'failed', message });
  });
});

describe('credentials', () => {
  test('let in, and are asked for where they are missing or wrong', async () => {
    const url = `${closed.url}/app`;
    expect(await git().resolveHead(from(url, { credentials: CREDENTIALS }))).toBe(commits[2]);
    await expect(git().resolve(from(url))).rejects.toMatchObject({
      message: `${url} cannot be read without credentials: give the service a git token that may read it.`,
    });
    const wrong = { ...CREDENTIALS, password: 'wrong-password' };
    const error = await git()
      .resolve(from(url, { credentials: wrong }))
      .catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ message: expect.stringContaining('does not accept the git token') });
    expect(JSON.stringify(error) + String(error)).not.toContain('wrong-password');
  });

  test('in the URL are used and not shown', async () => {
    const url = closed.url.replace('//', `//${CREDENTIALS.username}:${CREDENTIALS.password}@`);
    const { lines } = await checkout(from(`${url}/app`), commits[2]!);
    expect(lines.join('\n')).not.toContain(CREDENTIALS.password);
    await expect(git().resolve(from(`${url}/missing`))).rejects.toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(CREDENTIALS.password) }),
    );
  });

  test('stand on no command line, while git is at work', async () => {
    await using hanging = await startGitServer({ root: root.folder, hangs: true });
    const abort = new AbortController();
    const asking = git().resolve(from(`${hanging.url}/app`, { credentials: CREDENTIALS, signal: abort.signal }));
    await expect.poll(() => hanging.requests.length).toBe(1);
    const running = commandLines();
    expect(running.join('\n')).toContain(`${hanging.url}/app`);
    expect(running.join('\n')).not.toContain(CREDENTIALS.password);
    expect(running.join('\n')).not.toContain(Buffer.from(`reader:${CREDENTIALS.password}`).toString('base64'));
    abort.abort(new Error('cancelled'));
    await expect(asking).rejects.toMatchObject({ name: 'RuntimeError', code: 'aborted' });
    await expect.poll(() => commandLines().join('\n')).not.toContain(hanging.url);
  });

  test('follow a redirect on the same server, and none to another', async () => {
    await using moved = await startGitServer({
      root: root.folder,
      credentials: CREDENTIALS,
      redirects: { '/old': '/app', '/away': `${open.url}/app`, '/round': '/round' },
    });
    const ask = (name: string) => git().resolveHead(from(`${moved.url}/${name}`, { credentials: CREDENTIALS }));
    expect(await ask('old')).toBe(commits[2]);
    expect(moved.authorizations.every((authorization) => authorization !== null)).toBe(true);
    const before = open.authorizations.length;
    expect(await ask('away')).toBe(commits[2]);
    expect(new Set(open.authorizations.slice(before))).toEqual(new Set([null]));
    await expect(ask('round')).rejects.toMatchObject({ code: 'unreachable' });
  });
});

describe('addresses', () => {
  test('are asked for before anything is connected, for redirects too', async () => {
    await using moved = await startGitServer({ root: root.folder, redirects: { '/away': 'http://private.test/app' } });
    const asked: string[] = [];
    const guarded = new Git({
      request,
      localRoots: [],
      addressPolicy: async (host) => {
        asked.push(host);
        if (host === 'private.test') throw new Error('private.test is private');
        return [host];
      },
    });
    await expect(guarded.resolve(from('http://private.test/app'))).rejects.toThrow('private.test is private');
    await expect(guarded.resolve(from(`${moved.url}/away`))).rejects.toThrow('private.test is private');
    expect(asked).toEqual(['private.test', '127.0.0.1', 'private.test']);
  });

  test('that were checked are those that are connected to', async () => {
    const pinned = new Git({ localRoots: [], request, addressPolicy: async () => ['127.0.0.1'] });
    const url = `${open.url}/app`.replace('127.0.0.1', 'repositories.test');
    expect((await pinned.resolve(from(url))).id).toBe(commits[2]);
  });

  test('that a server names in passing are not asked: objects that it says are elsewhere are not fetched there', async () => {
    let called = 0;
    const inner = createServer((_request, response) => void response.end(`${++called}`));
    await new Promise<void>((resolve) => inner.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise((resolve) => inner.close(() => resolve())));
    const elsewhere = `http://127.0.0.1:${(inner.address() as AddressInfo).port}/objects`;
    // The old protocol of plain files (http-alternates), and the new one of bundles.
    const files: Record<string, string> = {
      '/HEAD': 'ref: refs/heads/main\n',
      '/info/refs': `${commits[0]}\trefs/heads/main\n`,
      '/objects/info/http-alternates': `${elsewhere}\n`,
      '/objects/info/alternates': `${elsewhere}\n`,
      '/objects/info/packs': '',
    };
    const asked: string[] = [];
    const outer = createServer((request, response) => {
      const name = request.url!.split('?')[0]!.replace('/dumb', '');
      asked.push(name);
      response.writeHead(name in files ? 200 : 404, { 'content-type': 'text/plain' }).end(files[name] ?? '');
    });
    await new Promise<void>((resolve) => outer.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise((resolve) => outer.close(() => resolve())));
    const url = `http://127.0.0.1:${(outer.address() as AddressInfo).port}/dumb`;
    await expect(git().resolve(from(url), commits[0])).rejects.toMatchObject({ name: 'RuntimeError' });
    expect(asked).toContain('/info/refs');
    // Git that fetched what is missing by itself would go on for ever, one process in the other.
    expect(asked.length).toBeLessThan(20);
    expect(called).toBe(0);
  });

  test('that do not answer are told', async () => {
    await expect(git().resolve(from('http://127.0.0.1:9/app'))).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('http://127.0.0.1:9/app cannot be reached'),
    });
  });
});

describe('the configuration of the machine and of the repository', () => {
  test('runs no hooks and no programs', async () => {
    const trap = root.make('trap');
    const id = trap.commit({ 'a.txt': 'a\n', '.gitattributes': '*.txt filter=evil\n' });
    const mark = path.join(out, 'mark');
    const program = path.join(out, 'program');
    writeFileSync(program, `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
    for (const name of ['core.fsmonitor', 'core.sshCommand', 'filter.evil.smudge', 'uploadpack.packObjectsHook'])
      trap.git('config', name, program);
    writeFileSync(path.join(trap.url, '.git', 'hooks', 'post-checkout'), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
    const { folder } = await checkout(from(trap.url), id);
    expect(readFileSync(path.join(folder, 'a.txt'), 'utf8')).toBe('a\n');
    expect(existsSync(mark)).toBe(false);
  });

  test('of a folder within a larger work tree only that folder is seen', async () => {
    const source = from(path.join(app.url, 'sub'));
    expect(await git().listFiles(source)).toEqual(['Dockerfile']);
    expect(await git().readFile(source, 'Dockerfile')).toBe('FROM x\n');
    await expect(git().readFile(source, '../README.md')).rejects.toMatchObject({ code: 'refused' });
    const { folder } = await checkout(source, commits[1]!);
    expect(readdirSync(folder)).toEqual(['Dockerfile']);
    await expect(checkout(source, commits[0]!)).rejects.toThrow(/sub\/ is not a folder of .* in that commit/);
  });

  test('a folder that was a link in an older commit leads nowhere', async () => {
    const tricky = root.make('tricky');
    const victim = path.join(root.folder, 'victim');
    mkdirSync(path.join(victim, 'deep'), { recursive: true });
    writeFileSync(path.join(victim, 'deep', 'kept'), 'kept');
    symlinkSync(victim, path.join(tricky.url, 'way'));
    const linked = tricky.commit({});
    rmSync(path.join(tricky.url, 'way'));
    tricky.commit({ 'way/deep/a.txt': 'a' });
    await expect(checkout(from(path.join(tricky.url, 'way/deep')), linked)).rejects.toThrow(/is not a folder of/);
    expect(readFileSync(path.join(victim, 'deep', 'kept'), 'utf8')).toBe('kept');
  });

  test('a folder that is no repository is told', async () => {
    mkdirSync(path.join(root.folder, 'empty'));
    await expect(git().resolve(from(path.join(root.folder, 'empty')))).rejects.toThrow(/is not a git repository/);
    await expect(git().resolve(from(`${open.url}/missing`))).rejects.toThrow(/There is no repository at/);
  });
});

test.each([
  ['git version 2.39.5 (Debian)', false],
  ['git version 2.44.9', false],
  ['git version 2.45.0.windows.1', true],
  ['git version 2.50.1 (Apple Git-155)', true],
  ['git version 3.0.0', true],
  ['something else', false],
])('objects are left out only by a git that does not fetch them by itself later: %s', (text, expected) => {
  expect(isPromising(text)).toBe(expected);
});

describe('submodules', () => {
  /** A repository with submodules at the given URLs, whose links stand at the commit. */
  function withSubmodules(name: string, urls: Record<string, string>, commit: string): [TestRepository, string] {
    const repository = root.make(name);
    const lines = Object.entries(urls).map(([at, url]) => `[submodule "${at}"]\n\tpath = ${at}\n\turl = ${url}\n`);
    repository.commit({ '.gitmodules': lines.join(''), 'own.txt': 'own\n' });
    for (const at of Object.keys(urls))
      repository.git('update-index', '--add', '--cacheinfo', `160000,${commit},${at}`);
    return [repository, commitIndex(repository)];
  }

  test.each([['a local folder'], ['http']])('are fetched, nested ones too, from %s', async (kind) => {
    const suffix = kind === 'http' ? '-http' : '';
    const [middle, inner] = withSubmodules(`middle${suffix}`, { 'lib/app': '../app' }, commits[1]!);
    const [outer, id] = withSubmodules(`outer${suffix}`, { vendor: `../middle${suffix}` }, inner);
    expect(middle.url).not.toBe(outer.url);
    const { folder } = await checkout(from(kind === 'http' ? `${open.url}/outer-http` : outer.url), id);
    expect(readFileSync(path.join(folder, 'vendor/lib/app/README.md'), 'utf8')).toBe('two\r\n');
    const names = readdirSync(folder, { recursive: true }).map((name) => path.basename(String(name)));
    expect(names).not.toContain('.git');
  });

  test('get the credentials of their own server only', async () => {
    await using other = await startGitServer({ root: root.folder });
    const urls = { same: '../app', away: `${other.url}/app` };
    const [, id] = withSubmodules('private', urls, commits[2]!);
    const { folder } = await checkout(from(`${closed.url}/private`, { credentials: CREDENTIALS }), id);
    expect(existsSync(path.join(folder, 'same/README.md'))).toBe(true);
    expect(existsSync(path.join(folder, 'away/README.md'))).toBe(true);
    expect(other.authorizations.length).toBeGreaterThan(0);
    expect(new Set(other.authorizations)).toEqual(new Set([null]));
  });

  test.each([
    ['a folder of the machine', '/etc'],
    ['a program', 'ext::sh -c id'],
  ])('at %s are refused', async (_what, url) => {
    const [, id] = withSubmodules(`bad-${url.slice(0, 3).replace('/', '')}`, { bad: url }, commits[0]!);
    const name = `bad-${url.slice(0, 3).replace('/', '')}`;
    await expect(checkout(from(`${open.url}/${name}`), id)).rejects.toMatchObject({ code: 'refused' });
  });

  test.each([
    ['an update command', 'lib', 'path = lib\n\turl = ../app\n\tupdate = !touch MARK'],
    ['a name that leads out', '../../../owned', 'path = lib\n\turl = ../app'],
    ['a helper in its URL', 'lib', 'path = lib\n\turl = ext::touch% MARK'],
    ['an option for a URL', 'lib', 'path = lib\n\turl = --upload-pack=touch MARK'],
    ['an option behind a relative path', 'lib', 'path = lib\n\turl = ./-u../../../..'],
    ['a line end in its URL', 'lib', 'path = lib\n\turl = "../app\\n[core]"'],
  ])('with %s run nothing and write nothing beside the checkout', async (what, name, fields) => {
    const mark = path.join(out, 'submodule-mark');
    const repository = root.make(`tricks-${what.replaceAll(' ', '-')}`);
    repository.commit({ '.gitmodules': `[submodule "${name}"]\n\t${fields.replaceAll('MARK', mark)}\n`, a: 'a' });
    repository.git('update-index', '--add', '--cacheinfo', `160000,${commits[2]},lib`);
    const id = commitIndex(repository);
    const before = readdirSync(out).sort();
    const folder = path.join(out, 'tricks', 'deep', 'tree');
    await git()
      .checkout(from(repository.url), id, folder, () => undefined)
      .then(
        () => expect(readdirSync(path.join(folder, 'lib'))).toContain('README.md'),
        (error: unknown) => expect(error).toMatchObject({ name: 'RuntimeError' }),
      );
    expect(existsSync(mark)).toBe(false);
    expect(existsSync(path.join(out, 'owned'))).toBe(false);
    expect(readdirSync(out).sort()).toEqual([...new Set([...before, 'tricks'])].sort());
    rmSync(path.join(out, 'tricks'), { recursive: true });
  });

  test('without a URL are told by name', async () => {
    const repository = root.make('nameless');
    repository.commit({ '.gitmodules': '', a: 'a' });
    repository.git('update-index', '--add', '--cacheinfo', `160000,${commits[0]},lost`);
    const id = commitIndex(repository);
    await expect(checkout(from(repository.url), id)).rejects.toThrow(/The submodule lost has no URL/);
  });
});

describe('Git LFS', () => {
  const oidOf = (content: string) => createHash('sha256').update(content).digest('hex');
  const pointerTo = (content: string, size = content.length) =>
    `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${size}\n`;

  /** A repository with pointers, and a server that has the contents. */
  async function withLarge(name: string, contents: string[], server: Partial<GitServerOptions> = {}) {
    const repository = root.make(name);
    const files = Object.fromEntries(contents.map((content, at) => [`sub/${at}.bin`, pointerTo(content)]));
    const id = repository.commit({ '.gitattributes': '*.bin filter=lfs\n', 'b.txt': 'b', ...files });
    const objects = new Map(contents.map((content) => [oidOf(content), content]));
    return { id, repository, server: await startGitServer({ root: root.folder, objects, ...server }) };
  }

  test('brings the contents, with the credentials of the repository, the program git-lfs or not', async () => {
    const contents = ['a large file, so to say', 'x'.repeat(3_000_000), 'a large file, so to say'];
    const { id, server } = await withLarge('with-lfs', contents, { credentials: CREDENTIALS });
    await using _ = server;
    const { folder } = await checkout(from(`${server.url}/with-lfs`, { credentials: CREDENTIALS }), id);
    for (const [at, content] of contents.entries())
      expect(readFileSync(path.join(folder, `sub/${at}.bin`), 'utf8')).toBe(content);
    expect(readdirSync(folder, { recursive: true })).toHaveLength(6);
    expect(server.requests).toContain('/with-lfs.git/info/lfs/objects/batch');
  });

  test('brings the contents that a local repository keeps', async () => {
    const repository = root.make('with-local-lfs');
    const id = repository.commit({ '.gitattributes': '*.bin filter=lfs\n', 'a.bin': pointerTo('content') });
    const oid = oidOf('content');
    const store = path.join(repository.url, '.git/lfs/objects', oid.slice(0, 2), oid.slice(2, 4));
    await expect(checkout(from(repository.url), id)).rejects.toThrow(`it does not hold ${oid}`);
    mkdirSync(store, { recursive: true });
    writeFileSync(path.join(store, oid), 'content');
    const { folder } = await checkout(from(repository.url), id);
    expect(readFileSync(path.join(folder, 'a.bin'), 'utf8')).toBe('content');
    writeFileSync(path.join(store, oid), 'another');
    await expect(checkout(from(repository.url), id)).rejects.toThrow(/is something else/);
  });

  test('is had from no private address, by whatever way a server leads there', async () => {
    let called = 0;
    const inner = createServer((_request, response) => void response.end(`secret ${++called}`));
    await new Promise<void>((resolve) => inner.listen(0, '127.0.0.2', resolve));
    onTestFinished(() => new Promise((resolve) => inner.close(() => resolve())));
    const { port } = inner.address() as AddressInfo;
    const guarded = createHttpClient({ allowedPrivateAddresses: ['127.0.0.1/32'] });
    for (const [at, leads] of [
      { href: `http://127.0.0.2:${port}/x` },
      { href: `http://0x7f.2:${port}/x` },
      { href: `http://[::ffff:127.0.0.2]:${port}/x` },
      { redirect: `http://127.0.0.2:${port}/x` },
    ].entries()) {
      const { id, server } = await withLarge(`leads-${at}`, ['content'], { leads });
      await using _ = server;
      const asking = new Git({ localRoots: [], request: guarded.request }).checkout(
        from(`${server.url}/leads-${at}`),
        id,
        path.join(out, `leads-${at}`),
        () => undefined,
      );
      await expect(asking).rejects.toThrow(/private, local or reserved address/);
    }
    expect(called).toBe(0);
  });

  test.each([
    ['another content', { contents: 'CONTENT' }, /is something else/],
    ['a longer one', { contents: 'x'.repeat(10_000_000) }, /longer than it should be/],
    ['none', { without: true }, /the server has not/],
    ['a file of the machine', { href: 'file:///etc/passwd' }, /must be an http or https URL/],
  ] as const)('of a server that gives %s is refused', async (what, leads, message) => {
    const name = `gives-${what.replaceAll(' ', '-')}`;
    const { id, server } = await withLarge(name, ['content'], { leads });
    await using _ = server;
    await expect(checkout(from(`${server.url}/${name}`), id)).rejects.toThrow(message);
  });

  test('gets the token at its own place only', async () => {
    const elsewhere = await startGitServer({ root: root.folder, objects: new Map([[oidOf('content'), 'content']]) });
    await using _elsewhere = elsewhere;
    const href = `${elsewhere.url}/x.git/info/lfs/objects/${oidOf('content')}`;
    const { id, server } = await withLarge('token', ['content'], { credentials: CREDENTIALS, leads: { href } });
    await using _ = server;
    await checkout(from(`${server.url}/token`, { credentials: CREDENTIALS }), id);
    expect(elsewhere.requests).toHaveLength(1);
    expect(elsewhere.authorizations).toEqual([null]);
  });

  test('that no file needs is not missed', async () => {
    const repository = root.make('not-large');
    const id = repository.commit({ '.gitattributes': '*.bin filter=lfs\n', 'a.txt': 'text\n' });
    const { folder } = await checkout(from(repository.url), id);
    expect(existsSync(path.join(folder, 'a.txt'))).toBe(true);
  });
});

test('nothing is left in the folder for temporary files', async () => {
  // A folder of its own: git of other tests works in the common one meanwhile.
  const folder = mkdtempSync(path.join(tmpdir(), 'qd-git-left-'));
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
  await git().listFiles(from(app.url));
  await git()
    .resolve(from(app.url, { branch: 'none' }))
    .catch(() => undefined);
  expect(readdirSync(folder)).toEqual([]);
});

/** Commits what is staged; answers the commit. */
function commitIndex(repository: TestRepository): string {
  repository.git(...IDENTITY, 'commit', '--quiet', '-m', 'links');
  return repository.git('rev-parse', 'HEAD');
}

function commandLines(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')];
      } catch {
        return [];
      }
    });
}
