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
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Git } from '#runtimes/tools/git/index.ts';
import { isPromising } from '#runtimes/tools/git/promises.ts';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import { CREDENTIALS, useGit } from '#runtimes/tools/git/git.fixture.ts';

const { root, open, closed, app, commits, out, git, from, checkout, request } = await useGit();

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

  test('a commit that takes more disk than a checkout may is refused, and so is a look into it', async () => {
    const disk = { mostBytes: 4096, reservedBytes: 0 };
    const limited = new Git({ localRoots: [root.folder], request, disk });
    const why = 'takes more than the 0 MiB of disk that the operator allows.';
    const folder = path.join(mkdtempSync(path.join(out, 'c-')), 'tree');
    await expect(limited.checkout(from(url()), commits[2]!, folder, () => undefined)).rejects.toThrow(why);
    await expect(limited.readFile(from(url()), 'README.md')).rejects.toThrow(why);
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

  test('files are listed and read of one fetch, and nothing outside of the repository is', async () => {
    const read = await git().withFiles(from(url()), async (files) => {
      await expect(files.read('../../etc/passwd')).rejects.toMatchObject({ code: 'refused' });
      return [files.paths, await files.read('src/main.txt'), await files.read('src'), await files.read('missing')];
    });
    expect(read).toEqual([['README.md', 'src/main.txt', 'sub/Dockerfile'], 'no end of line', undefined, undefined]);
    const why = new Error('of the work');
    await expect(git().withFiles(from(url()), () => Promise.reject(why))).rejects.toBe(why);
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
    // A git that fetched missing objects by itself would start processes inside each other without end.
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

describe('changes since a fork', () => {
  const forked = root.make('forked');
  const base = forked.commit({ 'a.txt': 'one\n', 'b.txt': 'one\n' });
  forked.git('checkout', '-q', '-b', 'feature');
  const head = forked.commit({ 'b.txt': 'two\n' });
  forked.git('checkout', '-q', 'main');
  const main = forked.commit({ 'a.txt': 'two\n' });
  forked.git('checkout', '-q', '--orphan', 'other');
  const unrelated = forked.commit({ 'c.txt': 'one\n' });
  const of = { branch: 'feature' };

  test.each([
    ['a local folder', () => forked.url],
    ['http', () => `${open.url}/forked`],
  ])('from %s are those of the head alone, whatever the other branch has changed meanwhile', async (_name, url) => {
    const pathsOf = async (since: string, to: string, sinceFork: boolean) =>
      (await git().changes(from(url(), of), since, to, sinceFork)).paths;
    expect(await pathsOf(main, head, false)).toEqual(['a.txt', 'b.txt']);
    expect(await pathsOf(main, head, true)).toEqual(['b.txt']);
    expect(await pathsOf(base, head, true)).toEqual(['b.txt']);
    expect(await pathsOf(main.slice(0, 12), head.slice(0, 12), true)).toEqual(['b.txt']);
  });

  test('are unknown where nothing is in common, or the other commit is gone', async () => {
    const source = from(`${open.url}/forked`, of);
    expect((await git().changes(source, unrelated, head, true)).paths).toBeNull();
    expect((await git().changes(source, 'f'.repeat(40), head, true)).paths).toBeNull();
  });
});

test('nothing is left in the folder for temporary files', async () => {
  // Separate folder: git processes of other tests use the common one meanwhile.
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
