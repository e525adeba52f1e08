import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import fastJsonStringify from 'fast-json-stringify';
import type { TSchema } from 'typebox';
import { prune } from '#platform/http/prune.ts';
import { NAME_PATTERN } from '#platform/http/schema.ts';
import { AppError, type FieldError } from '#kernel/errors.ts';

const OPTIONS = { allErrors: true, useDefaults: true, strict: false, addUsedSchema: false } as const;
/** Bodies are taken as they are; queries come as text and are read as what the schema says. */
const bodies = withFormats(new Ajv({ ...OPTIONS }));
const queries = withFormats(new Ajv({ ...OPTIONS, coerceTypes: 'array' }));

/** The usual formats. A date-time has to be one that Date and PostgreSQL have as well, and that can go out again. */
function withFormats(ajv: Ajv): Ajv {
  addFormats.default(ajv);
  const { validate } = ajv.formats['date-time'] as { validate: (text: string) => boolean };
  return ajv.addFormat('date-time', { type: 'string', validate: (text) => validate(text) && isPointInTime(text) });
}

const [FIRST, END] = [Date.parse('0001-01-01T00:00:00Z'), Date.UTC(10_000, 0)];

/** Whether RFC 3339 text is a point in time of the years 1 to 9999 in UTC: no leap second, no zone that leads out of them. */
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
const queryValidator = lazily((schema) => queries.compile(schema));
const serializer = lazily((schema) => fastJsonStringify(schema as never, { rounding: 'round' }));

/**
 * Checks a body in place (defaults are filled in); what the schema does not name is left out, so that no handler stores it by
 * mistake. Throws 400 that names every wrong field (decisions.md 6).
 */
export function checkBody(schema: TSchema, value: unknown): void {
  check(bodyValidator(schema), value, 'body');
  prune(schema, value);
}

/** Checks and converts a query in place; what the schema does not name is left out. */
export function checkQuery(schema: TSchema, value: unknown): void {
  check(queryValidator(schema), value, 'query');
  prune(schema, value);
}

/** Text of an answer. Only what the schema names goes out; a required field that is missing throws. */
export const serialize = (schema: TSchema, value: unknown): string => serializer(schema)(value);

function check(validate: ValidateFunction, value: unknown, where: string): void {
  if (validate(value)) return;
  const errors = fieldErrors(validate.errors ?? [], where);
  const message = errors.map((error) => (error.field ? `${error.field}: ${error.message}` : error.message)).join('; ');
  throw new AppError('bad_request', message, { errors });
}

/** Variants of a union report each of their errors: the innermost of each field says the most, and one of it is enough. */
function fieldErrors(errors: ErrorObject[], where: string): FieldError[] {
  const byField = new Map<string, string>();
  for (const error of errors) {
    if (error.keyword === 'if' || error.keyword === 'anyOf' || error.keyword === 'oneOf') continue;
    const field = pathOf(error) || where;
    if (!byField.has(field)) byField.set(field, messageOf(error));
  }
  if (byField.size === 0 && errors[0]) byField.set(pathOf(errors[0]) || where, 'has none of the allowed forms');
  return [...byField].slice(0, 20).map(([field, message]) => ({ field, message }));
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
  if (error.keyword === 'format' || (error.keyword === 'pattern' && error.schemaPath.includes('Uuid')))
    return `must be a valid ${String(params.format)}`;
  if (error.keyword === 'pattern' && params.pattern === NAME_PATTERN)
    return 'must have a character that can be seen, and no control characters';
  if (error.keyword === 'pattern') return `must match ${String(params.pattern)}`;
  return error.message ?? 'is not valid';
}
