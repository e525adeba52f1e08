import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { TestRepository } from '#test/harness/repository.ts';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import { CREDENTIALS, commitIndex, useGit } from '#runtimes/tools/git/git.fixture.ts';

const { root, open, closed, commits, out, git, from, checkout } = await useGit();

describe('submodules', () => {
  /** Makes a repository with submodules at the given URLs, whose links point to the commit. */
  function withSubmodules(name: string, urls: Record<string, string>, commit: string): [TestRepository, string] {
    const repository = root.make(name);
    const lines = Object.entries(urls).map(([at, url]) => `[submodule "${at}"]\n\tpath = ${at}\n\turl = ${url}\n`);
    repository.commit({ '.gitmodules': lines.join(''), 'own.txt': 'own\n' });
    for (const at of Object.keys(urls))
      repository.git('update-index', '--add', '--cacheinfo', `160000,${commit},${at}`);
    return [repository, commitIndex(repository)];
  }

  const commitOf = (name: string) => root.open(name).git('rev-parse', 'HEAD');

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

  test('of a pull request are fetched without credentials, and none with the access of this installation', async () => {
    const [publicOne, id] = withSubmodules('request-public', { lib: `${open.url}/app` }, commits[1]!);
    publicOne.git('update-ref', 'refs/pull/7/head', id);
    const request = (name: string) =>
      from(`${closed.url}/${name}`, { credentials: CREDENTIALS, branch: 'refs/pull/7/head' });
    const { folder } = await checkout(request('request-public'), id);
    expect(existsSync(path.join(folder, 'lib/README.md'))).toBe(true);
    // A private repository of the same server, for which the credentials would do; and a folder that sources may name.
    for (const [name, url, code] of [
      ['request-private', '../app', 'failed'],
      ['request-local', path.join(root.folder, 'app'), 'refused'],
      ['request-ssh', 'ssh://git@127.0.0.1/acme/app', 'refused'],
    ] as const) {
      const [repository, head] = withSubmodules(name, { lib: url }, commits[1]!);
      repository.git('update-ref', 'refs/pull/7/head', head);
      const before = closed.authorizations.length;
      await expect(checkout(request(name), head), name).rejects.toMatchObject({ code });
      const asked = closed.requests.slice(before).map((one, at) => [one, closed.authorizations[before + at]]);
      for (const [one, authorization] of asked) if (String(one).startsWith('/app')) expect(authorization).toBeNull();
    }
    // A branch that the code of a fork is deployed from is no better.
    const branch = { ...from(`${closed.url}/request-private`, { credentials: CREDENTIALS }), isUntrusted: true };
    await expect(checkout(branch, commitOf('request-private'))).rejects.toMatchObject({ code: 'failed' });
    // The same commits by a branch are the organization's own.
    expect(
      existsSync(
        path.join(
          (
            await checkout(
              from(`${closed.url}/request-private`, { credentials: CREDENTIALS }),
              commitOf('request-private'),
            )
          ).folder,
          'lib/README.md',
        ),
      ),
    ).toBe(true);
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
