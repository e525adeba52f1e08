import type { TSchema } from 'typebox';

type Json = Record<string, any>;

/** Values that fields of a name have in examples, if their schemas allow them. */
const BY_NAME: Record<string, unknown> = {
  name: 'shop',
  description: 'Everything of the shop',
  key: 'LOG_LEVEL',
  value: 'debug',
  url: 'https://github.com/acme/shop.git',
  branch: 'main',
  root_path: '/',
  cpu: 500,
  memory: 512,
  storage: 10,
  email: 'ada@example.com',
  region: 'eu-west-3',
  tag: '1.4.2',
  image_name: 'acme/shop',
  domain: 'shop.example.com',
  timezone: 'Europe/Paris',
  opa_policy: 'package quarterdeck\n\nallow if input.level == "READ"',
};

/** Texts from which the first that fits a pattern is taken. */
const TEXTS = [
  'shop',
  'https://example.com/shop',
  '/data',
  'a94a8fe5ccb19ba61c4c0873d391e987982fbbd3',
  '1.4.2',
  'acme/shop',
  'shop.example.com',
  '30s',
  'deploy@acme.iam.gserviceaccount.com',
  'LOG_LEVEL',
  '123456789012',
];

const BY_FORMAT: Record<string, string> = {
  uuid: '3f0c1a52-7d0e-4b8a-9c55-2f6f1a9be8d1',
  'date-time': '2026-01-31T09:00:00.000Z',
  date: '2026-01-31',
  email: 'ada@example.com',
  uri: 'https://example.com/shop',
  duration: 'PT5M',
};

/** Optional fields that examples show all the same. */
const SHOWN = new Set(['description', 'branch', 'cpu', 'memory']);

/** Value that a schema accepts, for people to read: what it requires, and a few fields besides. */
export function exampleFor(schema: TSchema | Json, name = ''): unknown {
  const node = schema as Json;
  if ('const' in node) return node.const;
  if (Array.isArray(node.enum)) return node.enum.find((value: unknown) => value !== null);
  const known = Object.hasOwn(BY_NAME, name) ? BY_NAME[name] : undefined;
  if (known !== undefined && fits(node, known)) return known;
  if (node.type === 'object' && node.properties) return objectFor(node);
  const variants = node.anyOf ?? node.oneOf;
  if (Array.isArray(variants)) return exampleFor(variants[0], name);
  switch (node.type) {
    case 'string':
      return textFor(node);
    case 'integer':
    case 'number':
      return Math.min(Math.max(1, node.minimum ?? 1), node.maximum ?? Infinity);
    case 'boolean':
      return true;
    case 'array':
      return node.maxItems === 0 ? [] : [exampleFor(node.items, name)];
    default:
      return {};
  }
}

function objectFor({ properties, required = [], exactlyOne }: Json): Json {
  const wanted = new Set<string>(required);
  if (exactlyOne) wanted.add(exactlyOne[0]);
  for (const name of Object.keys(properties)) if (SHOWN.has(name)) wanted.add(name);
  const [first] = Object.keys(properties);
  if (wanted.size === 0 && first !== undefined) wanted.add(first);
  return Object.fromEntries(
    Object.entries<Json>(properties)
      .filter(([name]) => wanted.has(name))
      .map(([name, property]) => [name, exampleFor(property, name)]),
  );
}

function textFor(node: Json): string {
  const ofFormat = BY_FORMAT[node.format as string];
  if (ofFormat !== undefined && fits(node, ofFormat)) return ofFormat;
  const text = TEXTS.find((candidate) => fits(node, candidate));
  if (text === undefined) throw new Error(`No example fits the pattern ${node.pattern}: add one to TEXTS.`);
  return text;
}

/** Returns whether a scalar keeps to type, pattern and bounds. */
function fits(node: Json, value: unknown): boolean {
  if (typeof value === 'number')
    return (
      (node.type === 'integer' || node.type === 'number') &&
      value >= (node.minimum ?? -Infinity) &&
      value <= (node.maximum ?? Infinity)
    );
  const text = value as string;
  return (
    node.type === 'string' &&
    text.length >= (node.minLength ?? 0) &&
    text.length <= (node.maxLength ?? Infinity) &&
    (node.pattern === undefined || new RegExp(node.pattern, 'u').test(text))
  );
}
