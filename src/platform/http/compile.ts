import { Ajv, type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import fastJsonStringify from 'fast-json-stringify';
import type { TSchema } from 'typebox';
import { blankRulesOf, dropBlank } from '#platform/http/blank.ts';
import { prune, type Path } from '#platform/http/prune.ts';
import { NAME_PATTERN, UUID_PATTERN } from '#platform/http/schema.ts';
import { readTexts } from '#platform/http/texts.ts';
import { AppError, type FieldError } from '#kernel/errors.ts';

const OPTIONS = { verbose: true, useDefaults: true, strict: false, addUsedSchema: false } as const;
/** Bodies are taken as they are; queries come as text and are read as what the schema says. */
const bodies = withFormats(new Ajv({ ...OPTIONS }));
const bodyFaults = withFormats(new Ajv({ ...OPTIONS, allErrors: true }));
/** Validator of queries, which are as short as a request line, so that it looks for all faults at once. */
const queries = withFormats(new Ajv({ ...OPTIONS, allErrors: true, coerceTypes: 'array' }));

/** Adds the usual formats. A date-time must be one that Date and PostgreSQL have as well, and that can go out again. */
function withFormats(ajv: Ajv): Ajv {
  addFormats.default(ajv);
  const { validate } = ajv.formats['date-time'] as { validate: (text: string) => boolean };
  return ajv.addFormat('date-time', { type: 'string', validate: (text) => validate(text) && isPointInTime(text) });
}

const [FIRST, END] = [Date.parse('0001-01-01T00:00:00Z'), Date.UTC(10_000, 0)];

/** Returns whether RFC 3339 text is a point in time of the years 1 to 9999 in UTC: no leap second, no zone that leads out of them. */
function isPointInTime(text: string): boolean {
  const time = Date.parse(text);
  return time >= FIRST && time < END;
}

const lazily = <T>(make: (schema: TSchema) => T) => {
  const made = new WeakMap<TSchema, T>();
  return (schema: TSchema): T => {
    let value = made.get(schema);
    if (value === undefined) made.set(schema, (value = make(schema)));
    return value;
  };
};

// Compiled on first use: 550 routes compiled at start take over 2 s and 100 MB.
const bodyValidator = lazily((schema) => bodies.compile(schema));
const faultFinder = lazily((schema) => bodyFaults.compile(schema));
const blankRules = lazily((schema) => blankRulesOf(schema) ?? null);
const queryValidator = lazily((schema) => queries.compile(schema));
const serializer = lazily((schema) => fastJsonStringify(schema as never, { rounding: 'round' }));

/**
 * Checks a body in place: blank ids go, texts become values where allowed, defaults are filled in. Removes and returns what the schema does
 * not name, so that no handler stores it by mistake. Throws 400 that names every wrong field, of a very large body the first one.
 */
export function checkBody(schema: TSchema, value: unknown): Path[] {
  const blank = blankRules(schema);
  if (blank) dropBlank(blank, value);
  readTexts(schema, value);
  const validate = bodyValidator(schema);
  if (!validate(value)) {
    const all = hasMoreValuesThan(MAX_JUDGED_VALUES, value) ? undefined : faultFinder(schema);
    if (all && !all(value)) throw refusalOf(all.errors, 'body');
    throw refusalOf(validate.errors, 'body');
  }
  return prune(schema, value);
}

/** Checks and converts a query in place. What the schema does not name is left out; returns the paths of that. */
export function checkQuery(schema: TSchema, value: unknown): Path[] {
  const validate = queryValidator(schema);
  if (!validate(value)) throw refusalOf(validate.errors, 'query');
  return prune(schema, value);
}

/** Text of an answer. Only what the schema names goes out; a required field that is missing throws. */
export const serialize = (schema: TSchema, value: unknown): string => serializer(schema)(value);

/** Number of values up to which every fault of a body is looked for: each fault costs an object, and 1 MiB holds half a million values. */
const MAX_JUDGED_VALUES = 2_000;
/** Faults that an answer names. */
const MAX_FAULTS = 100;

function hasMoreValuesThan(limit: number, value: unknown): boolean {
  const left: unknown[] = [value];
  for (let seen = 0; left.length > 0; seen++) {
    if (seen + left.length > limit) return true;
    const next = left.pop();
    if (next === null || typeof next !== 'object') continue;
    // No spread: a list may be longer than a call has room for arguments.
    for (const item of Array.isArray(next) ? next : Object.values(next)) left.push(item);
  }
  return false;
}

function refusalOf(found: ErrorObject[] | null | undefined, where: string): AppError {
  const errors = fieldErrors(found ?? [], where);
  const message = errors.map((error) => (error.field ? `${error.field}: ${error.message}` : error.message)).join('; ');
  return new AppError('bad_request', message, { errors });
}

/** Chooses one error for each field: variants of a union each report theirs, and the innermost says the most. */
function fieldErrors(errors: ErrorObject[], where: string): FieldError[] {
  const byField = new Map<string, string>();
  for (const error of errors) {
    if (error.keyword === 'if' || error.keyword === 'anyOf' || error.keyword === 'oneOf') continue;
    const field = pathOf(error) || where;
    if (!byField.has(field)) byField.set(field, messageOf(error));
  }
  if (byField.size === 0 && errors[0]) byField.set(pathOf(errors[0]) || where, 'has none of the allowed forms');
  return [...byField].slice(0, MAX_FAULTS).map(([field, message]) => ({ field, message }));
}

function pathOf(error: ErrorObject): string {
  const parts = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (error.keyword === 'required') parts.push((error.params as { missingProperty: string }).missingProperty);
  return parts.reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path ? `${path}.${part}` : part), '');
}

function messageOf(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  if (error.keyword === 'required') return 'is required';
  if (error.keyword === 'enum')
    return `must be one of ${(params.allowedValues as unknown[]).filter((value) => value !== null).join(', ')}`;
  if (error.keyword === 'type') return typeMessageOf(error);
  // An id has a format and a pattern: what is wrong is that it is none.
  if (params.format === 'uuid' || (error.keyword === 'pattern' && params.pattern === UUID_PATTERN)) {
    const { listed } = (error.parentSchema ?? {}) as { listed?: string };
    return `must be ${listed ?? 'an id: a lower-case UUID, as the list of these records answers it'}`;
  }
  if (params.format === 'date-time') return 'must be a time in RFC 3339, such as 2026-01-31T09:00:00Z';
  if (error.keyword === 'format') return `must be a valid ${String(params.format)}`;
  if (error.keyword === 'pattern' && params.pattern === NAME_PATTERN)
    return 'must have a character that can be seen, and no control characters';
  if (error.keyword === 'pattern') return `must match ${String(params.pattern)}`;
  return error.message ?? 'is not valid';
}

/** Returns a message with the expected type; numbers name their unit. */
function typeMessageOf(error: ErrorObject): string {
  const { type } = error.params as { type: string | string[] };
  const { unit } = (error.parentSchema ?? {}) as { unit?: string };
  const wanted = [type].flat().filter((one) => one !== 'null');
  const words = wanted.map((one) =>
    one === 'integer' && unit ? `a whole number of ${unit}` : (TYPE_WORDS[one] ?? one),
  );
  return `must be ${words.join(' or ')}`;
}

const TYPE_WORDS: Record<string, string> = {
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  string: 'a text',
  array: 'a list',
  object: 'an object',
};
