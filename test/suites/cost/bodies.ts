import fc from 'fast-check';
import type { Route } from '#platform/http/route.ts';
import { newId } from '#kernel/ids.ts';
import { valid, type Schema } from '../fuzz/values.ts';

/** Body of a request, and the name of its heaviest part. */
export interface Heavy {
  what: string;
  text: string;
}

/** Size of the filled part of a body, in bytes: the limit of 1 MiB, less room for the rest of the body. */
const BYTES = 1024 * 1024 - 4096;

/** Length in characters below which a value is tried only together with all others. */
const LITTLE = 20_000;

type Json = any;

/**
 * Returns the bodies of an operation that cost the most to read. They fill each field to its limit, fill all fields, or break every schema.
 * With `parsing` also those that cost the parser most, before it is known which operation they are for.
 */
export function heavyBodies(route: Route, example: unknown, parsing: boolean): Heavy[] {
  if (route.bodyContentType) return texts().map((text, at) => ({ what: `text ${at}`, text }));
  const schema = route.body as Schema;
  const base = (example ?? {}) as object;
  const places = placesIn(schema, []);
  const filled = places.flatMap(({ path, fills }) =>
    fills(BYTES)
      .filter((value) => JSON.stringify(value).length > LITTLE)
      .map((value, at) => ({ what: `${path.join('.')} ${at}`, value: putAt(base, path, value) })),
  );
  const share = BYTES / Math.max(1, places.length);
  const all = places.reduce<unknown>((body, { path, fills }) => putAt(body, path, fills(share)[0]), base);
  return [
    ...filled.map(({ what, value }) => ({ what, text: JSON.stringify(value) })),
    { what: 'everything', text: JSON.stringify(all) },
    ...unlike(base),
    ...(parsing ? unreadable(base) : []),
  ].filter(({ text }) => Buffer.byteLength(text) <= 1024 * 1024);
}

const UNKNOWN_KEYS = Array.from({ length: 60_000 }, (_, n) => `"unknown_key_${n}":${n}`).join();
const LIST = `[${'{},'.repeat(BYTES / 3)}{}]`;

/** Returns the text of an object up to where more fields would stand. */
const openText = (base: object): string =>
  `${JSON.stringify(base).slice(0, -1)}${Object.keys(base).length > 0 ? ',' : ''}`;

/** Returns bodies that a schema refuses for what they have too much. */
const unlike = (base: object): Heavy[] => [
  { what: 'many unknown keys', text: `${openText(base)}${UNKNOWN_KEYS}}` },
  { what: 'a list instead', text: LIST },
];

/** Returns bodies that no schema allows and that must not slow a parser down. */
function unreadable(base: object): Heavy[] {
  const begin = openText(base);
  const half = BYTES / 2 - begin.length;
  return [
    { what: 'deep lists', text: `${begin}"a":${'['.repeat(half)}${']'.repeat(half)}}` },
    { what: 'deep objects', text: `${begin}"a":${'{"a":'.repeat(half / 3)}1${'}'.repeat(half / 3)}}` },
    {
      what: 'deep lists before the name of a prototype',
      text: `${begin}"a":${'['.repeat(20_000)}${']'.repeat(20_000)},"b":[${'{},'.repeat(10_000)}{"__proto__":1}]}`,
    },
    { what: 'the same key', text: `${begin}${'"a":1,'.repeat(BYTES / 6 - begin.length)}"a":1}` },
    { what: 'many numbers', text: `${begin}"a":[${'9e9,'.repeat(BYTES / 4 - begin.length)}1]}` },
    { what: 'one long number', text: `${begin}"a":${'9'.repeat(BYTES - begin.length)}}` },
    { what: 'escapes', text: `${begin}"a":"${'\\u00e9'.repeat(BYTES / 6 - begin.length)}"}` },
  ];
}

/** Returns bodies of operations that take a text. */
const texts = (): string[] => [
  'x'.repeat(BYTES),
  '['.repeat(BYTES),
  '{'.repeat(BYTES),
  'a: '.repeat(BYTES / 3),
  `${'a: &a [*a, *a]\n'.repeat(BYTES / 15)}`,
  '- '.repeat(BYTES / 2),
  '\n'.repeat(BYTES),
];

/** Field of a body that can hold long values, and its longest values in a number of bytes. */
interface Place {
  path: string[];
  fills(bytes: number): unknown[];
}

function placesIn(schema: Schema, path: string[]): Place[] {
  if (schema.anyOf) return schema.anyOf.flatMap((one) => placesIn(one, path));
  if (schema.enum || schema.format) return [];
  if (schema.type === 'string') return [{ path, fills: (bytes) => longTexts(schema, bytes) }];
  if (schema.type === 'array') return [{ path, fills: (bytes) => longLists(schema, bytes) }];
  if (schema.type !== 'object') return [];
  const more = schema.additionalProperties;
  const own = typeof more === 'object' ? [{ path, fills: (bytes: number) => wideObjects(more, bytes) }] : [];
  const inner = Object.entries(schema.properties ?? {}).flatMap(([key, one]) => placesIn(one, [...path, key]));
  return [...own, ...inner];
}

/** Units of the texts that cost patterns and parsers the most; each is repeated to the limit. */
const UNITS = ['a', ' ', '\n', 'a.', '-a', '{{a', '*'];

const longTexts = ({ maxLength = Infinity }: Schema, bytes: number): string[] =>
  UNITS.map((unit) => {
    const characters = Math.floor(Math.min(maxLength, bytes / Buffer.byteLength(JSON.stringify(unit).slice(1, -1))));
    return unit.repeat(Math.ceil(characters / unit.length)).slice(0, characters);
  });

function longLists({ items = {}, maxItems = Infinity }: Schema, bytes: number): unknown[][] {
  const item = sampleOf(items);
  const count = (value: unknown) =>
    Math.max(1, Math.floor(Math.min(maxItems, bytes / (JSON.stringify(value).length + 12))));
  const alike = Array.from({ length: count(item) }, () => item);
  const different = Array.from({ length: count(item) }, (_, n) => numbered(item, n));
  const wrong = Array.from({ length: count(1) }, () => 1);
  // An item whose own parts are as long as possible.
  const inner = placesIn(items, []).flatMap(({ path, fills }) =>
    fills(bytes).map((value) => [putAt(item, path, value)]),
  );
  return [different, alike, wrong, ...inner];
}

function wideObjects(schema: Schema, bytes: number): unknown[] {
  const value = sampleOf(schema);
  const count = Math.floor(bytes / (JSON.stringify(value).length + 16));
  return [Object.fromEntries(Array.from({ length: count }, (_, n) => [`KEY_${n}`, value]))];
}

/** Returns an item with the number in its texts and ids, as lists refuse duplicates. */
function numbered(item: Json, n: number): Json {
  if (typeof item === 'string') return /^[0-9a-f-]{36}$/.test(item) ? newId() : `${item.slice(0, 20)}${n}`;
  if (typeof item === 'number') return n + 1;
  if (Array.isArray(item) || item === null || typeof item !== 'object') return item;
  return Object.fromEntries(Object.entries(item).map(([key, value]) => [key, numbered(value, n)]));
}

const sampleOf = (schema: Schema): Json =>
  fc.sample(valid(schema, { id: fc.constant(newId()), fields: {} }), { seed: 1, numRuns: 1 })[0];

function putAt(base: Json, path: string[], value: unknown): Json {
  const [first, ...rest] = path;
  if (first === undefined) return value;
  const object = base !== null && typeof base === 'object' && !Array.isArray(base) ? base : {};
  return { ...object, [first]: putAt(object[first], rest, value) };
}
