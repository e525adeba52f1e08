import { expect, test } from 'vitest';
import { setValues, type Pairs } from '#services/kinds/helm/set-values.ts';

const made = (pairs: Partial<Pairs>, present: unknown[] = []) =>
  setValues({ set: [], setString: [], setJson: [], ...pairs }, present);

test.each<[string, string, unknown]>([
  ['a', 'b', { a: 'b' }],
  ['image.tag', '1.4.0', { image: { tag: '1.4.0' } }],
  ['a', '1', { a: 1 }],
  ['a', '-5', { a: -5 }],
  ['a', '0', { a: 0 }],
  ['a', '0123', { a: '0123' }],
  ['a', '1.5', { a: '1.5' }],
  ['a', '1e3', { a: '1e3' }],
  ['a', 'true', { a: true }],
  ['a', 'null', { a: null }],
  ['a', '', { a: '' }],
  ['a', 'b=c', { a: 'b=c' }],
  ['a', '{x,y}', { a: ['x', 'y'] }],
  ['a', '{1,true}', { a: [1, true] }],
  ['a', '{}', { a: [] }],
  ['a', 'x\\,y', { a: 'x,y' }],
  ['a', '1,b=2', { a: 1, b: 2 }],
  ['a', '{x},b=2', { a: ['x'], b: 2 }],
  ['a[0].b', '1', { a: [{ b: 1 }] }],
  ['a[2]', 'x', { a: [null, null, 'x'] }],
  ['a[0][1]', 'x', { a: [[null, 'x']] }],
  ['nodeSelector.kubernetes\\.io/os', 'linux', { nodeSelector: { 'kubernetes.io/os': 'linux' } }],
  ['__proto__.polluted', 'x', JSON.parse('{"__proto__": {"polluted": "x"}}')],
])('set %s=%s means what it means in helm', (key, value, values) => {
  expect(made({ set: [[key, value]] })).toEqual(values);
  expect(({} as { polluted?: string }).polluted).toBeUndefined();
});

test('set_string keeps every value a text, and counts more than set and set_json', () => {
  const pairs = {
    setString: [
      ['a', '1'],
      ['b', '{1,2}'],
    ] as [string, string][],
  };
  expect(made(pairs)).toEqual({ a: '1', b: ['1', '2'] });
  const all: Pairs = {
    set: [
      ['a', '2'],
      ['b', '2'],
    ],
    setString: [['a', '3']],
    setJson: [
      ['a', '1'],
      ['c', '{"d": 1}'],
    ],
  };
  expect(setValues(all, [])).toEqual({ a: '3', b: 2, c: { d: 1 } });
});

test('an index changes an item of the list that the files have, of which the last one counts', () => {
  const files = [{ servers: [{ port: 3 }, { port: 4 }] }, { servers: [{ port: 1 }] }];
  expect(made({ set: [['servers[1].port', '8080']] }, files)).toEqual({ servers: [{ port: 3 }, { port: 8080 }] });
  expect(files[0]!.servers[1]).toEqual({ port: 4 });
});

test.each([
  ['a', 'x,y', /write \\, for a comma/],
  ['a', '{x', /no \} at its end/],
  ['a[x]', '1', /is no key of values/],
  ['a..b', '1', /is no key of values/],
  ['a[99999999]', '1', /at most 65536 is an index/],
])('set %s=%s is refused', (key, value, message) => {
  expect(() => made({ set: [[key, value]] })).toThrow(message);
});
