import fc from 'fast-check';
import type { Route } from '#platform/http/route.ts';
import { exampleOf } from '../answers.ts';
import type { World } from '../world.ts';
import { NASTY_TEXT, nasty, nearly, nearlyJson, valid, type Schema, type Sources } from './values.ts';

/** Request as it is sent. */
export interface Sent {
  url: string;
  body: string | undefined;
  headers: Record<string, string>;
}

/** Ids that a request may name, by their owner. */
export interface Ids {
  own: string[];
  foreign: string[];
  /** Ids of deleted things, and of things that never existed. */
  gone: string[];
}

const idOf = (ids: Ids): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...ids.own) },
    { weight: 2, arbitrary: fc.constantFrom(...ids.foreign) },
    { weight: 1, arbitrary: fc.constantFrom(...ids.gone) },
  );

/** Values of fields that mean something only if they point to something. */
const fieldsOf = (repository: string): Sources['fields'] => ({
  url: fc.constantFrom(repository, repository, `${repository}/..`, 'https://example.invalid/a/b.git'),
  target_url: fc.constant('https://hooks.example.org/y'),
  branch: fc.constantFrom('HEAD', 'main', '-x', 'a..b'),
  root_path: fc.constantFrom('/', '', '..', '/../..', 'a/b'),
  dockerfile_path: fc.constantFrom('Dockerfile', '../Dockerfile', '/etc/passwd', '-'),
});

/** Generates requests for an operation: valid, nearly valid and invalid ones in path, query, body and headers. */
export function requestsFor(route: Route, world: World, ids: Ids, repository: string): fc.Arbitrary<Sent> {
  const sources = { id: idOf(ids), fields: fieldsOf(repository) };
  return fc.record({
    url: fc.tuple(pathOf(route, world, ids), queryOf(route, world, sources)).map((parts) => parts.join('')),
    body: bodyOf(route, world, sources),
    headers: headersOf(route),
  });
}

function pathOf(route: Route, world: World, ids: Ids): fc.Arbitrary<string> {
  const right = (exampleOf(world, route).path ?? world.pathOf(route)).split('/');
  const names = route.path.split('/');
  const parts = names.map((name, at) =>
    name.startsWith('{')
      ? fc.oneof(
          { weight: 16, arbitrary: fc.constant(right[at]!) },
          { weight: 2, arbitrary: idOf(ids) },
          { weight: 1, arbitrary: fc.constantFrom(...NASTY_TEXT.filter(isSegment)).map(encoded) },
          {
            weight: 1,
            arbitrary: fc.constantFrom('%00', '%ff', '%', '%2e%2e%2f', right[at]!.toUpperCase(), 'x'.repeat(400)),
          },
        )
      : fc.constant(name),
  );
  return fc.tuple(...parts).map((all) => all.join('/'));
}

/** Excludes segments that clients resolve before they send: another operation would be called. */
const isSegment = (text: string): boolean => text !== '.' && text !== '..';

/** Encodes text for a URL. A lone surrogate has no encoding: clients send the replacement character in its place. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

function queryOf(route: Route, world: World, sources: Sources): fc.Arbitrary<string> {
  const example = exampleOf(world, route).query ?? '';
  const schema = (route.query ?? { type: 'object', properties: {} }) as Schema;
  const names = [...Object.keys(schema.properties ?? {}), ...(route.settle ? ['wait'] : [])];
  const allowed = valid(schema, sources).map((value) => queryText(value as Record<string, unknown>));
  const odd = fc
    .array(fc.tuple(fc.constantFrom(...names, 'page', 'unknown', '__proto__'), nasty.map(plainText)), { maxLength: 3 })
    .map((pairs) => pairs.map(([name, value]) => `${name}=${encoded(value)}`).join('&'));
  const broken = fc.constantFrom('%', 'a=%ff', '&&&', '='.repeat(50), 'a[b][c]=1', `${names[0] ?? 'a'}&`.repeat(300));
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant(example) },
    { weight: names.length > 0 ? 5 : 1, arbitrary: allowed.map(asked) },
    { weight: 2, arbitrary: odd.map(asked) },
    { weight: 1, arbitrary: odd.map((text) => `${example || '?'}&${text}`) },
    { weight: 1, arbitrary: broken.map(asked) },
  );
}

const asked = (text: string): string => (text === '' ? '' : `?${text}`);
const plainText = (value: unknown): string =>
  (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).slice(0, 5000);

const queryText = (value: Record<string, unknown>): string =>
  Object.entries(value)
    .flatMap(([key, one]) => (Array.isArray(one) ? one : [one]).map((item) => `${key}=${encoded(String(item))}`))
    .join('&');

function bodyOf(route: Route, world: World, sources: Sources): fc.Arbitrary<string | undefined> {
  if (!route.body) return fc.constantFrom(undefined, undefined, undefined, '{}', '', 'null', '{"half');
  const example = exampleOf(world, route).body;
  if (route.bodyContentType)
    return fc.oneof(fc.constant(String(example ?? '')), nasty.map(plainText), fc.constantFrom(...YAML));
  const base = (example ?? {}) as object;
  const right = fc.oneof(
    { weight: 1, arbitrary: valid(route.body as Schema, sources) },
    { weight: 3, arbitrary: valid(route.body as Schema, sources).chain((value) => someOf(base, value)) },
  );
  return fc.oneof(
    { weight: 5, arbitrary: right.map((value) => JSON.stringify(value)) },
    {
      weight: 5,
      arbitrary: fc
        .oneof(fc.constant(base), right)
        .chain(nearly)
        .map((value) => JSON.stringify(value)),
    },
    { weight: 1, arbitrary: fc.constant(JSON.stringify(base)).chain(nearlyJson) },
  );
}

/** Generates an example with a few of its fields taken from another value. */
function someOf(base: object, value: unknown): fc.Arbitrary<unknown> {
  const entries = Object.entries((value ?? {}) as object);
  return fc
    .subarray(entries, { maxLength: Math.min(3, entries.length) })
    .map((some) => ({ ...base, ...Object.fromEntries(some) }));
}

const YAML = ['&a [*a]', '!!js/function x', 'a: &x [1]\nb: *x', '- '.repeat(5000), '{'.repeat(3000), '\t: :'];

const HEADERS: Record<string, string>[] = [
  { 'if-match': '*' },
  { 'if-match': '"x", W/"y",,' },
  { 'if-none-match': '*, "a' },
  { 'idempotency-key': 'k'.repeat(256) },
  { 'idempotency-key': 'a b\u00ff' },
  { 'user-agent': '\u001b[31mMozilla/ CLI Terraform provider' },
  { 'user-agent': 'x'.repeat(6000) },
  { 'content-type': 'application/json; charset=utf-16' },
  { 'content-type': 'text/plain' },
  { 'content-type': ';;;' },
  { 'content-encoding': 'gzip' },
  { range: 'bytes=0-1' },
  { 'x-request-id': '\u00ff'.repeat(100) },
  { host: 'evil.example' },
  { 'x-http-method-override': 'DELETE' },
];

function headersOf(route: Route): fc.Arbitrary<Record<string, string>> {
  const type: Record<string, string> = route.bodyContentType ? { 'content-type': route.bodyContentType } : {};
  const more = fc.oneof(
    { weight: 6, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.constantFrom(...HEADERS) },
  );
  return more.map((one) => ({ ...type, ...one }));
}
