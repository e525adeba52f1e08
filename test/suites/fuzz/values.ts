import fc from 'fast-check';

/** Part of JSON schema that the endpoints use (src/platform/http/schema.ts). */
export interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  enum?: unknown[];
  nullable?: boolean;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
}

type Any = fc.Arbitrary<unknown>;

const long = (unit: string, times: number) => unit.repeat(times);

/** Texts that some layer below may interpret. */
export const NASTY_TEXT = [
  '',
  ' ',
  '.',
  '..',
  '-',
  '--',
  '-x',
  '--upload-pack=touch /tmp/qd-owned',
  '--config=core.sshCommand=id',
  'ext::sh -c id',
  'file:///etc/passwd',
  'http://127.0.0.1:1/',
  'http://[::ffff:7f00:1]/',
  'https://user:pass@example.invalid/x.git',
  'git@localhost:x/y.git',
  '$(id)',
  '`id`',
  '; id',
  "' or '1'='1",
  '"}],"x":[{"',
  '{{A}}',
  '{{{{A}}}}',
  '${jndi:ldap://x}',
  '%s%n%00',
  '../../../../etc/passwd',
  '/etc/passwd',
  '/..//./x',
  'C:\\x',
  'a\0b',
  '\0',
  'a\nb',
  '\r\nSet-Cookie: a=b',
  '\u001b]52;c;YQ==\u0007\u001b[31m',
  '\u202Eabc\u2066',
  '\uFEFF\u200B',
  '\uD800',
  'x\uDFFFy',
  'e\u0301\u0301\u0301',
  '👩‍👩‍👧‍👦',
  'İıß',
  '𝒳'.repeat(200),
  'NaN',
  'null',
  'undefined',
  'true',
  '0',
  '-1',
  '1e999',
  '2147483648',
  '9223372036854775808',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '0000-01-01T00:00:00Z',
  '2016-12-31T23:59:60Z',
  '9999-12-31T23:59:59.999+23:59',
  '00000000-0000-0000-0000-000000000000',
  '*',
  '/',
  '(a+)+$',
  '[',
  'a=b',
  'a,b',
  long('a', 256),
  long('é', 3000),
  long('../', 2000),
  long('a.', 4000),
  long(' x', 20_000),
] as const;

/** Numbers at the limits of machines and PostgreSQL. */
const NASTY_NUMBERS = [
  0, -0, -1, 1, 0.5, 1e-7, 255, 256, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 32, 2 ** 53, 2 ** 63,
  -(2 ** 63), 1e21, 1e308, -1e308,
]; // prettier-ignore

const nested = (depth: number): unknown => {
  let value: unknown = [];
  for (let at = 0; at < depth; at++) value = at % 2 ? [value] : { a: value };
  return value;
};

const nastyText = fc.constantFrom(...NASTY_TEXT);
const nastyNumber = fc.constantFrom(...NASTY_NUMBERS);

/** Generates values of any shape, whatever the schema requires. */
export const nasty: Any = fc.oneof(
  { weight: 5, arbitrary: nastyText },
  { weight: 3, arbitrary: nastyNumber },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(null, true, false, [], {}, [null], [[]], { length: -1 }, { id: null }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      nested(20),
      nested(150),
      Array.from({ length: 3000 }, () => 0),
    ),
  },
);

const TIMES = [
  '2026-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00.000Z',
  '1970-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  '2016-12-31T23:59:60Z',
  '2026-02-28T23:59:59-23:59',
  '2026-01-01T00:00:00.123456789Z',
];

/** Sources of valid values: ids, and meaningful values for fields by their name. */
export interface Sources {
  id: fc.Arbitrary<string>;
  fields: Record<string, Any>;
}

/** Generates values that a schema allows; half of the texts within the bounds are nasty. */
export function valid(schema: Schema, sources: Sources, field = ''): Any {
  if (schema.nullable) {
    const { nullable: _, ...rest } = schema;
    return fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 4, arbitrary: valid(rest, sources, field) });
  }
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((one) => valid(one, sources, field)));
  if (schema.type === 'object') return object(schema, sources);
  if (schema.type === 'array')
    return fc.array(valid(schema.items ?? {}, sources, field), {
      minLength: schema.minItems ?? 0,
      maxLength: Math.min(schema.maxItems ?? 4, (schema.minItems ?? 0) + 4),
    });
  if (schema.type === 'integer' || schema.type === 'number') return number(schema);
  if (schema.type === 'boolean') return fc.boolean();
  if (schema.type === 'string') return text(schema, sources, field);
  return nasty;
}

function object(schema: Schema, sources: Sources): Any {
  const properties = Object.entries(schema.properties ?? {});
  const known = fc.record(Object.fromEntries(properties.map(([key, value]) => [key, valid(value, sources, key)])), {
    requiredKeys: schema.required ?? [],
  });
  if (typeof schema.additionalProperties !== 'object') return known;
  const more = fc.dictionary(
    fc.oneof(fc.string({ maxLength: 8 }), nastyText),
    valid(schema.additionalProperties, sources),
    { maxKeys: 3 },
  );
  return fc.tuple(known, more).map(([first, second]) => ({ ...first, ...second }));
}

function number({ type, minimum, maximum }: Schema): Any {
  const [low, high] = [minimum ?? -(2 ** 53) + 1, maximum ?? 2 ** 53 - 1];
  const edges = [low, low + 1, 0, 1, 2 ** 31 - 1, 2 ** 31, high - 1, high].filter((one) => one >= low && one <= high);
  const any =
    type === 'integer' ? fc.integer({ min: low, max: high }) : fc.double({ min: low, max: high, noNaN: true });
  const small = fc.integer({ min: Math.max(low, 0), max: Math.min(high, Math.max(low, 0) + 100) });
  return fc.oneof(fc.constantFrom(...edges), any, { weight: 2, arbitrary: small });
}

function text(schema: Schema, sources: Sources, field: string): Any {
  const { format, pattern, minLength = 0, maxLength = 400 } = schema;
  if (format === 'uuid') return sources.id;
  if (format === 'date-time') return fc.constantFrom(...TIMES);
  const fits = (value: unknown): boolean => {
    const length = typeof value === 'string' ? [...value].length : -1;
    return length >= minLength && length <= maxLength && (!pattern || new RegExp(pattern, 'u').test(value as string));
  };
  const odd = NASTY_TEXT.filter(fits);
  const hinted = sources.fields[field];
  const plain = pattern
    ? fc.stringMatching(new RegExp(pattern), { maxLength: Math.min(maxLength, 60) }).filter(fits)
    : fc.string({ minLength, maxLength: Math.min(maxLength, minLength + 20) });
  const edge = fc.constant('é'.repeat(Math.min(maxLength, 100_000))).filter(fits);
  const choices: fc.WeightedArbitrary<unknown>[] = [{ weight: 4, arbitrary: plain }];
  if (odd.length > 0) choices.push({ weight: 3, arbitrary: fc.constantFrom(...odd) });
  if (!pattern) choices.push({ weight: 1, arbitrary: edge });
  if (hinted) choices.push({ weight: 8, arbitrary: hinted });
  if (format === 'uri') choices.push({ weight: 4, arbitrary: fc.constant('https://example.invalid/x') });
  if (format === 'email') choices.push({ weight: 4, arbitrary: fc.constant('x@example.invalid') });
  return fc.oneof(...choices);
}

type Place = (string | number)[];

function places(value: unknown, at: Place = []): Place[] {
  if (value === null || typeof value !== 'object') return [at];
  const inner = Object.entries(value).flatMap(([key, item]) =>
    places(item, [...at, Array.isArray(value) ? Number(key) : key]),
  );
  return [at, ...inner];
}

function changed(value: any, place: Place, change: (at: any, key: string | number) => void): unknown {
  if (place.length === 0) return value;
  const copy = structuredClone(value);
  const last = place.at(-1)!;
  change(
    place.slice(0, -1).reduce<any>((at, key) => at[key], copy),
    last,
  );
  return copy;
}

/** Generates values close to a given one: one part replaced, left out, doubled, or joined by an unknown field. */
export function nearly(value: unknown): Any {
  const all = places(value);
  const place = fc.constantFrom(...all);
  return fc.oneof(
    { weight: 6, arbitrary: fc.tuple(place, nasty).map(([at, odd]) => replace(value, at, odd)) },
    {
      weight: 2,
      arbitrary: place.map((at) => changed(value, at, (parent, key) => void delete parent[key])),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(place, fc.constantFrom('extra', 'id', 'organization_id', 'created_at', 'constructor', 'a'), nasty)
        .map(([at, key, odd]) => joined(value, at, key, odd)),
    },
  );
}

const replace = (value: unknown, at: Place, odd: unknown): unknown =>
  at.length === 0 ? odd : changed(value, at, (parent, key) => void (parent[key] = odd));

function joined(value: unknown, at: Place, key: string, odd: unknown): unknown {
  const copy = structuredClone(value);
  const there = at.reduce<any>((parent, step) => parent[step], copy);
  if (there && typeof there === 'object' && !Array.isArray(there)) there[key] = odd;
  return copy;
}

/** Generates text that is nearly a body: no serialiser of the program would write it. */
export function nearlyJson(text: string): fc.Arbitrary<string> {
  const inside = text.startsWith('{') ? text.slice(1) : '}';
  const comma = inside.trim() === '}' ? '' : ',';
  const first = /^\s*("(?:[^"\\]|\\.)*")/.exec(inside)?.[1] ?? '"name"';
  return fc.constantFrom(
    `{${first}:1${comma}${inside}`,
    `{"__proto__":{"a":1}${comma}${inside}`,
    `{"constructor":{"prototype":{"a":1}}${comma}${inside}`,
    `{"x":1e400${comma}${inside}`,
    `{"x":${'9'.repeat(400)}${comma}${inside}`,
    `{${first}:"\\ud800"${comma}${inside.replace(/^\s*"(?:[^"\\]|\\.)*"\s*:\s*"(?:[^"\\]|\\.)*",?/, '')}`,
    `\uFEFF${text}`,
    `${text}${text}`,
    text.slice(0, -1),
    `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    `{"a":`.repeat(5_000),
    'null',
    'true',
    '"text"',
    '[]',
    'NaN',
    '',
    ' ',
    '\0',
  );
}
