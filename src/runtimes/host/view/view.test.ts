import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { overlayOptions } from '#runtimes/host/view/mounts.ts';
import {
  runArguments,
  unshareArguments,
  type ViewAccount,
  type ViewAction,
  type ViewPlan,
} from '#runtimes/host/view/plan.ts';
import { isWithin, resolveInRoot } from '#runtimes/host/view/root-path.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'view-'));
  mkdirSync(join(root, 'a/b'), { recursive: true });
  writeFileSync(join(root, 'a/b/file'), '');
});
afterEach(() => rmSync(root, { recursive: true }));

test('paths are resolved as in a root of their own: links and dots never lead out of it', () => {
  symlinkSync('/etc', join(root, 'absolute'));
  symlinkSync('../../../../..', join(root, 'a/up'));
  symlinkSync('b', join(root, 'a/beside'));
  symlinkSync('/a/beside/file', join(root, 'chain'));
  symlinkSync('circle', join(root, 'circle'));
  const resolved = (path: string) => resolveInRoot(root, path).slice(root.length);
  expect(resolved('/absolute/passwd')).toBe('/etc/passwd');
  expect(resolved('a/up/x')).toBe('/x');
  expect(resolved('/../../../x/./y')).toBe('/x/y');
  expect(resolved('/a/beside/file')).toBe('/a/b/file');
  expect(resolved('/chain')).toBe('/a/b/file');
  expect(resolved('/')).toBe('');
  expect(() => resolved('/circle/x')).toThrow('too many links');
});

test('a folder holds itself and what is below it, not what begins with its name', () => {
  expect(isWithin('/a', '/a')).toBe(true);
  expect(isWithin('/a', '/a/b')).toBe(true);
  expect(isWithin('/a', '/ab')).toBe(false);
  expect(isWithin('/', '/ab')).toBe(true);
});

test('an overlay has its layers in order; signs that mean something to mount are escaped', () => {
  expect(overlayOptions(['/one', '/with:colon,comma'], '/up', '/work')).toBe(
    'nosuid,nodev,userxattr,lowerdir=/one:/with\\:colon\\,comma,upperdir=/up,workdir=/work',
  );
});

const tools = { unshare: '/bin/unshare', setpriv: '/bin/setpriv', env: '/bin/env' };
const plan = (nested: boolean) => ({ nested, tools }) as ViewPlan;
const run = (account: ViewAccount): ViewAction & { kind: 'run' } => ({
  kind: 'run',
  argv: ['node', '--x'],
  env: {},
  cwd: '/app',
  account,
});

test('an instance of root becomes another account in its own root, without new privileges', () => {
  expect(runArguments(plan(false), '/r', run({ kind: 'instance', uid: 7 }))).toEqual([
    '/bin/env',
    '--default-signal=PIPE,XFSZ',
    '/bin/setpriv',
    '--no-new-privs',
    '/bin/unshare',
    '--setgid=7',
    '--setuid=7',
    '--fork',
    '--root=/r',
    '--wd=/app',
    '--',
    'node',
    '--x',
  ]);
});

test("an ordinary user's instance gets one more user namespace, as an account without capabilities", () => {
  expect(runArguments(plan(true), '/r', run({ kind: 'instance', uid: 1000 }))).toEqual([
    '/bin/env',
    '--default-signal=PIPE,XFSZ',
    '/bin/setpriv',
    '--no-new-privs',
    '/bin/unshare',
    '--user',
    '--map-user=1000',
    '--map-group=1000',
    '--fork',
    '--root=/r',
    '--wd=/app',
    '--',
    'node',
    '--x',
  ]);
  expect(unshareArguments({ nested: true, network: 'outer' })).toContain('--map-root-user');
  expect(unshareArguments({ nested: false, network: 'outer' })).not.toContain('--user');
  expect(unshareArguments({ nested: false, network: 'outer' })).not.toContain('--net');
  expect(unshareArguments({ nested: false, network: 'none' })).toContain('--net');
});

test('a build keeps the capabilities that installing takes, none by which it could reach the machine', () => {
  const args = runArguments(plan(false), '/r', run({ kind: 'builder' }));
  const kept = args.find((argument) => argument.startsWith('--bounding-set='))!;
  expect(kept).toMatch(/^--bounding-set=-all,\+chown,/);
  for (const refused of ['sys_admin', 'sys_ptrace', 'mknod', 'net_admin', 'sys_module', 'dac_read_search'])
    expect(kept).not.toContain(refused);
});
