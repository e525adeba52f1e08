import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isAffected,
  normalizePath,
  type Restriction,
} from '#services/capabilities/service/deployment-restrictions/affected.ts';

const match = (value: string): Restriction => ({ mode: 'MATCH', value });
const exclude = (value: string): Restriction => ({ mode: 'EXCLUDE', value });

describe('a push', () => {
  test.each([
    ['without restrictions deploys', [], ['README.md'], true],
    ['without restrictions deploys even when it changes nothing', [], [], true],
    ['within a matched folder deploys', [match('api')], ['api/src/main.ts'], true],
    ['of a matched file deploys', [match('/api/Dockerfile')], ['api/Dockerfile'], true],
    ['outside of every matched folder does not', [match('api'), match('lib')], ['web/main.ts'], false],
    ['in a folder whose name only begins alike does not', [match('api')], ['api2/main.ts', 'api.md'], false],
    ['of which one file is in a matched folder deploys', [match('api/')], ['web/x', 'api/x'], true],
    ['of excluded files only does not', [exclude('docs'), exclude('README.md')], ['docs/a.md', 'README.md'], false],
    ['of an excluded and another file deploys', [exclude('docs')], ['docs/a.md', 'main.ts'], true],
    ['of what is matched but excluded within does not', [match('api'), exclude('api/docs')], ['api/docs/a.md'], false],
    ['of what is matched and not excluded deploys', [match('api'), exclude('api/docs')], ['api/a.ts'], true],
    ['matched at the root deploys', [match('/')], ['any/thing'], true],
    ['excluded at the root never does', [exclude('./')], ['any/thing'], false],
    ['that changes nothing does not, where anything is restricted', [exclude('docs')], [], false],
    ['whose changes are unknown deploys', [match('api')], null, true],
  ] as [string, Restriction[], string[] | null, boolean][])('%s', (_what, restrictions, paths, wanted) =>
    expect(isAffected(restrictions, paths)).toBe(wanted),
  );
});

const part = fc.constantFrom('a', 'b', 'ab', 'a b', 'ä', '.a', '..a', 'a.ts');
const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const restriction = fc.record({ mode: fc.constantFrom('EXCLUDE', 'MATCH'), value: path }) as fc.Arbitrary<Restriction>;
const restrictions = fc.array(restriction, { maxLength: 6 });
const paths = fc.array(path, { maxLength: 6 });

describe('whatever is restricted', () => {
  test('each changed file is decided by itself: a push deploys if one of its files alone would', () =>
    fc.assert(
      fc.property(fc.array(restriction, { minLength: 1 }), paths, (given, changed) => {
        expect(isAffected(given, changed)).toBe(changed.some((one) => isAffected(given, [one])));
      }),
    ));

  test('order and repetition of restrictions and files change nothing', () =>
    fc.assert(
      fc.property(restrictions, paths, (given, changed) => {
        const wanted = isAffected(given, changed);
        expect(isAffected([...given, ...given].reverse(), [...changed, ...changed].reverse())).toBe(wanted);
      }),
    ));

  test('another EXCLUDE never makes a push deploy, and a MATCH beside others never keeps it from it', () =>
    fc.assert(
      fc.property(restrictions, paths, path, path, (given, changed, value, other) => {
        if (given.length > 0 && isAffected([...given, exclude(value)], changed))
          expect(isAffected(given, changed)).toBe(true);
        const matching = [...given, match(value)];
        if (isAffected(matching, changed)) expect(isAffected([...matching, match(other)], changed)).toBe(true);
      }),
    ));

  test('a file under a folder is decided like the folder itself, if no restriction names anything within it', () =>
    fc.assert(
      fc.property(restrictions, path, part, (given, folder, name) => {
        fc.pre(!given.some(({ value }) => value.startsWith(`${folder}/`)));
        expect(isAffected(given, [`${folder}/${name}`])).toBe(isAffected(given, [folder]));
      }),
    ));

  test('the spelling of a path does not matter', () =>
    fc.assert(
      fc.property(restrictions, paths, (given, changed) => {
        const odd = (value: string) => `//./${value.replaceAll('/', '/./')}/`;
        const respelt = given.map((one) => ({ ...one, value: odd(one.value) }));
        expect(isAffected(respelt, changed.map(odd))).toBe(isAffected(given, changed));
        for (const one of changed) expect(normalizePath(odd(one))).toBe(normalizePath(one));
      }),
    ));
});
