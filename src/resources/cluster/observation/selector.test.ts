import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AppError } from '#kernel/errors.ts';
import { matches, parseSelector } from '#resources/cluster/observation/selector.ts';
import { parseDuration, parseTime } from '#resources/cluster/observation/time.ts';

describe('a selector', () => {
  test('is read with name, labels and filters of lines', () => {
    expect(parseSelector('up{a="1", b!="x\\"y",} |= "in" != `out`', 'help')).toEqual({
      name: 'up',
      matchers: [
        { label: 'a', equal: true, value: '1' },
        { label: 'b', equal: false, value: 'x"y' },
      ],
      filters: [
        { contains: true, text: 'in' },
        { contains: false, text: 'out' },
      ],
    });
  });

  test('is refused, never misread, when it is more than that', () => {
    for (const query of [
      'sum(up)',
      'up[5m]',
      '{a=~"x"}',
      '{a="x"',
      '{a="x" b="y"}',
      '{a=}',
      'up + up',
      '{a="x"} | json',
    ])
      expect(() => parseSelector(query, 'write it so'), query).toThrow('query: write it so');
  });

  test('of any text ends, with a selector or a 400', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (query) => {
        try {
          parseSelector(query, 'help');
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
        }
      }),
    );
  });

  test('takes a label that is not there for the empty text', () => {
    const { matchers } = parseSelector('{a="", b!="x"}', 'help');
    expect([matches(matchers, {}), matches(matchers, { a: '1' }), matches(matchers, { b: 'x' })]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('a time', () => {
  test('is RFC 3339 or Unix digits by their length', () => {
    const moment = new Date('2026-01-02T03:04:05.678Z');
    for (const text of [
      '2026-01-02T03:04:05.678Z',
      '2026-01-02T04:04:05.678+01:00',
      '1767323045.678',
      '1767323045678',
      '1767323045678000',
      '1767323045678000000',
    ])
      expect(parseTime('start', text), text).toEqual(moment);
  });

  test('is refused in any other form', () => {
    for (const text of ['', 'yesterday', '2026-01-02', '2026-13-02T00:00:00Z', '-5', '1e9', '17673230456780000000'])
      expect(() => parseTime('start', text), text).toThrow('start: must be a time');
    expect(() => parseDuration('since', 'long')).toThrow('since');
    expect([parseDuration('since', '90'), parseDuration('since', '1h'), parseDuration('since', '250ms')]).toEqual([
      90_000, 3_600_000, 250,
    ]);
  });
});
