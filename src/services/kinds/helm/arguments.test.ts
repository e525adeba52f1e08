import { expect, test } from 'vitest';
import { checkArguments, hasFlag } from '#services/kinds/helm/arguments.ts';

test.each([
  [['--wait', '--atomic']],
  [['--description', 'a text', '--skip-crds']],
  [['--history-max=3', '--wait=false']],
])('takes %j', (given) => {
  expect(checkArguments(given)).toEqual(given);
});

test.each([
  [['--values', 'x']],
  [['-f/etc/passwd']],
  [['-if/etc/passwd']],
  [['-if', '/etc/passwd']],
  [['--set-file=a=/etc/passwd']],
  [['--post-renderer=./run']],
  [['--kube-apiserver=http://example.com']],
  [['--dependency-update']],
  [['--enable-dns']],
  [['--take-ownership']],
  [['--dry-run']],
  [['--timeout', '1h']],
  [['--set', 'a=b']],
  [['--description']],
  [['--wait=maybe']],
  [['positional']],
  [['--']],
  [['__proto__']],
])('refuses %j', (given) => {
  expect(() => checkArguments(given)).toThrow();
});

test('a flag is set where helm takes it for one, and the last one counts', () => {
  const flag = '--skip-schema-validation';
  for (const given of [[flag], ['--debug', `${flag}=true`], [`${flag}=false`, flag], ['--description=x', flag]])
    expect(hasFlag(given, flag), given.join(' ')).toBe(true);
  for (const given of [[], [`${flag}=false`], [flag, `${flag}=false`], ['--description', flag]])
    expect(hasFlag(given, flag), given.join(' ')).toBe(false);
});
