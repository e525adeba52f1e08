import { describe, expect, test } from 'vitest';
import { findJsonError } from '#kernel/json-error.ts';

describe('where a text stops being JSON', () => {
  test.each([
    ['', 1, 1],
    ['{', 1, 2],
    ['{"a": 1,}', 1, 9],
    ['{"a": }', 1, 7],
    ['{"a" 1}', 1, 6],
    ['{a: 1}', 1, 2],
    ["{'a': 1}", 1, 2],
    ['[1 2]', 1, 4],
    ['[1,]', 1, 4],
    ['{"a": 1}\n{}', 2, 1],
    ['{\n  "a": "b",\n  "c": undefined\n}', 3, 8],
    ['{"a": "b\nc"}', 1, 7],
    ['{"a": 01}', 1, 8],
    ['{"a": [}', 1, 8],
    ['}', 1, 1],
  ])('%j: line %d, column %d', (text, line, column) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(findJsonError(text)).toEqual({ line, column });
  });

  test.each(['{}', '[]', ' {"a": [1, -2.5e3, "x\\u00e9", true, null, {}, []]}\n', '"a"', '0', '[[[]]]'])(
    'nowhere in %j',
    (text) => {
      JSON.parse(text);
      expect(findJsonError(text)).toBeUndefined();
    },
  );
});
