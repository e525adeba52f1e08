import { badRequest } from '#kernel/errors.ts';
import { findJsonError } from '#kernel/json-error.ts';
import type { Output } from '#services/capabilities/service/variables/index.ts';

/** Fields of the long form of an output (`{"KEY": {"value": …}}`). */
const FIELDS = ['value', 'sensitive', 'description', 'mount_path', 'type'];
const MAX_OUTPUTS = 1000;

/**
 * Parses the output file of an execution: `{"KEY": "value"}`, or `{"KEY": {"value": …, "sensitive": true, "description": …, "mount_path":
 * …}}`, which is also what `terraform output -json` writes. Throws an error for people that says where it is wrong.
 */
export function parseOutputs(text: string, path: string): Output[] {
  const outputs = readObject(text, path);
  const entries = Object.entries(outputs);
  if (entries.length > MAX_OUTPUTS)
    throw badRequest(`${path} has ${entries.length} outputs: at most ${MAX_OUTPUTS} can be kept.`);
  return entries.map(([key, said]) => toOutput(key, said, path));
}

function readObject(text: string, path: string): Record<string, unknown> {
  const wrong = findJsonError(text);
  if (wrong) throw badRequest(`${path} is not JSON: line ${wrong.line}, column ${wrong.column}.`);
  const value: unknown = JSON.parse(text);
  if (isObject(value)) return value;
  throw badRequest(`${path} must be a JSON object such as {"KEY": "value"}.`);
}

function toOutput(key: string, said: unknown, path: string): Output {
  const at = `${path}, ${JSON.stringify(key)}`;
  const {
    value,
    sensitive,
    description,
    mount_path: mountPath,
  } = isObject(said) ? checkFields(said, at) : { value: said };
  if (sensitive !== undefined && typeof sensitive !== 'boolean')
    throw badRequest(`${at}: "sensitive" must be true or false.`);
  for (const [field, text] of Object.entries({ description, mount_path: mountPath }))
    if (text !== undefined && text !== null && typeof text !== 'string')
      throw badRequest(`${at}: "${field}" must be a text.`);
  return {
    key,
    value: toText(value, at),
    isSecret: sensitive === true,
    description: (description as string | null | undefined) ?? null,
    mountPath: (mountPath as string | null | undefined) ?? null,
  };
}

function checkFields(said: Record<string, unknown>, at: string): Record<string, unknown> {
  if (!('value' in said)) throw badRequest(`${at}: "value" is missing.`);
  const unknown = Object.keys(said).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) throw badRequest(`${at}: ${JSON.stringify(unknown)} is none of ${FIELDS.join(', ')}.`);
  return said;
}

/** Converts a value to text: numbers and truth values as they are written; lists and objects, which Terraform has, as JSON. */
function toText(value: unknown, at: string): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) throw badRequest(`${at} has no value: leave it out.`);
  return JSON.stringify(value);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
