import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { locate, overHttps, submoduleUrl } from '#runtimes/tools/git/location.ts';
import { checkBranch, checkCommit, insidePath } from '#runtimes/tools/git/names.ts';

const home = realpathSync(mkdtempSync(path.join(tmpdir(), 'git-location-')));
const root = path.join(home, 'root');
mkdirSync(path.join(root, 'inside'), { recursive: true });
mkdirSync(path.join(home, 'root-beside'));
mkdirSync(path.join(home, 'outside'));
symlinkSync(path.join(home, 'outside'), path.join(root, 'link-out'));
symlinkSync(path.join(root, 'inside'), path.join(home, 'link-in'));
symlinkSync('circle', path.join(root, 'circle'));
writeFileSync(path.join(root, 'file'), '');
afterAll(() => rmSync(home, { recursive: true }));

describe('a URL', () => {
  test.each([
    ['https://example.org/a/b.git', 'https', 'example.org', 'https://example.org'],
    ['http://example.org:8080/a', 'http', 'example.org', 'http://example.org:8080'],
    ['https://[2001:db8::1]/a', 'https', '2001:db8::1', 'https://[2001:db8::1]'],
    ['ssh://git@example.org:2222/a/b.git', 'ssh', 'example.org', 'ssh://example.org:2222'],
    ['git@example.org:a/b.git', 'ssh', 'example.org', 'ssh://example.org'],
  ])('%s is let pass', (url, kind, host, origin) => {
    expect(locate(url, [])).toEqual({ url, kind, host, origin, credentials: null });
  });

  test.each([
    'ext::sh -c touch% /tmp/x',
    'fd::17',
    'git://example.org/a',
    'ftp://example.org/a',
    'rsync://example.org/a',
    'file://elsewhere/etc',
    'javascript:alert(1)',
    '--upload-pack=touch /tmp/x',
    '-oProxyCommand=id',
    'ssh://-oProxyCommand=id/a',
    'ssh://-l@example.org/a',
    '-x@example.org:a',
    'git@-oProxyCommand=id:a',
    'git@example.org:-x',
    'example.org:a/b',
    'example.org/a/b',
    '../a',
    'https://',
    'https://exa mple.org/a',
    'https://example.org/a\nb',
    'https://example.org/a\0b',
    'https://example.org/a?service=x',
    'https://example.org/a#x',
    '',
  ])('%j is refused', (url) => {
    expect(() => locate(url, [root])).toThrow(expect.objectContaining({ name: 'RuntimeError', code: 'refused' }));
  });

  test('is given to git in the form that was checked', () => {
    expect(locate('https://inner.example\\@example.org/a', [])).toMatchObject({
      url: 'https://inner.example/@example.org/a',
      host: 'inner.example',
    });
    expect(locate('HTTPS://EXAMPLE.org:443/a/../b', [])).toMatchObject({ url: 'https://example.org/b' });
  });

  test('loses the credentials in it, which are used but shown nowhere', () => {
    const location = locate('https://me:p%40ss@example.org/a', []);
    expect(location).toMatchObject({
      url: 'https://example.org/a',
      credentials: { username: 'me', password: 'p@ss' },
    });
    expect(() => locate('ftp://me:secret@example.org/a', [])).toThrow(/^The git URL ftp:\/\/example\.org\/a has/);
  });
});

describe('a local folder', () => {
  test.each([
    root,
    path.join(root, 'inside'),
    `file://${root}/inside`,
    path.join(home, 'link-in'),
    path.join(root, 'inside', '..', 'inside'),
  ])('%s is let pass as its real path', (url) => {
    const found = locate(url, [root]);
    expect(found).toMatchObject({ kind: 'local', host: null });
    expect([root, path.join(root, 'inside')]).toContain(found.url);
  });

  test('is refused alike, whether it lies outside, leads outside or is not there', () => {
    const urls = [
      '/',
      home,
      path.join(home, 'outside'),
      path.join(home, 'root-beside'),
      path.join(root, 'link-out'),
      path.join(root, '..', 'outside'),
      `file://${root}/%2e%2e/outside`,
      path.join(root, 'file'),
      path.join(root, 'circle'),
      path.join(root, 'missing'),
    ];
    for (const url of urls)
      expect(() => locate(url, [root]), url).toThrow(/is not a folder of this machine that may be used/);
  });

  test('is refused where no roots are set, or the root is not there', () => {
    expect(() => locate(root, [])).toThrow(/QUARTERDECK_LOCAL_GIT_ROOTS/);
    expect(() => locate(root, [path.join(home, 'gone')])).toThrow(/QUARTERDECK_LOCAL_GIT_ROOTS/);
  });
});

test.each([
  ['git@example.org:a/b.git', 'https://example.org/a/b.git'],
  ['ssh://git@example.org/a/b.git', 'https://example.org/a/b.git'],
  ['ssh://git@example.org:22/a', 'https://example.org/a'],
  ['ssh://git@example.org:2222/a', null],
])('%s is over https %s', (url, https) => {
  expect(overHttps(locate(url, []))).toBe(https);
});

test.each([
  ['https://h.example/a/b.git', '../c.git', 'https://h.example/a/c.git'],
  ['https://h.example/a/b.git/', './c', 'https://h.example/a/b.git/c'],
  ['https://h.example/a/b', '../../x/c', 'https://h.example/x/c'],
  ['git@h.example:a/b.git', '../c.git', 'git@h.example:a/c.git'],
  ['git@h.example:b.git', '../c.git', 'git@h.example:c.git'],
  ['/srv/a/b', '../c', '/srv/a/c'],
  ['https://h.example/a', 'https://o.example/c', 'https://o.example/c'],
])('the submodule of %s at %s is %s', (parent, url, expected) => {
  expect(submoduleUrl(parent, url)).toBe(expected);
});

test('a submodule cannot climb out of its server', () => {
  expect(() => submoduleUrl('https://h.example/a', '../../other.example/c')).toThrow(/leads out of its server/);
});

describe('names', () => {
  test.each(['main', 'feature/a-b_c.d', 'v1.0', 'HEAD', 'grüße'])('%s is a branch', (branch) => {
    expect(() => checkBranch(branch)).not.toThrow();
  });

  test.each([
    '',
    '-x',
    '--upload-pack=x',
    '/a',
    'a/',
    'a..b',
    'a b',
    'a\nb',
    'a:b',
    'a~1',
    'a^',
    'a?',
    'a*',
    'a[',
    'a\\b',
    'a.lock',
    'a.lock/b',
    '.a',
    'a/.b',
    'a.',
    'a@{1}',
    '@',
    'a//b',
    'x'.repeat(256),
  ])('%j is no branch', (branch) => {
    expect(() => checkBranch(branch)).toThrow(expect.objectContaining({ code: 'refused' }));
  });

  test.each(['', 'main', '12345', 'g'.repeat(40), '-'.repeat(7), 'a'.repeat(41)])('%j is no commit', (commit) => {
    expect(() => checkCommit(commit)).toThrow(expect.objectContaining({ code: 'refused' }));
  });

  test('a path stays in the folder of its source', () => {
    expect(insidePath('sub/', '/a/../b.txt')).toBe('sub/b.txt');
    expect(insidePath('', 'a/b')).toBe('a/b');
    for (const file of ['../x', 'a/../../x', '..', 'a\0b'])
      expect(() => insidePath('sub/', file), file).toThrow(expect.objectContaining({ code: 'refused' }));
  });
});
