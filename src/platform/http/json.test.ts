import { expect, test } from 'vitest';
import { MAX_VALUES, parseJson } from './json.ts';

/** A list of so many values, itself included. */
const numbers = (count: number) => `[${'1,'.repeat(count - 2)}1]`;

test('a body with as many values as it may have is read, one with more is refused', () => {
  expect(parseJson(numbers(MAX_VALUES - 1))).toHaveLength(MAX_VALUES - 2);
  expect(() => parseJson(numbers(MAX_VALUES + 1))).toThrow('more than 50000 values');
  expect(() => parseJson('{"a":'.repeat(MAX_VALUES))).toThrow('values');
  expect(() => parseJson(`{${'"a":1,'.repeat(MAX_VALUES)}"a":1}`)).toThrow('values');
});

test('brackets and commas in texts are no values', () => {
  const text = `\\"${'[{,'.repeat(MAX_VALUES)}\\\\`;
  expect(parseJson(`{"values":"${text}"}`)).toEqual({ values: JSON.parse(`"${text}"`) });
});

test('a text that never ends is told as such', () => {
  expect(() => parseJson(`"${'['.repeat(3 * MAX_VALUES)}`)).toThrow('JSON');
});
