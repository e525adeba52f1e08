import { findJsonError } from '#kernel/json-error.ts';
import type { JobOutput } from '#kernel/parsing/formats.ts';

/** Fields of the long form of an output (`{"KEY": {"value": …}}`). */
const FIELDS = ['value', 'sensitive', 'description', 'mount_path', 'type'];
const MAX_OUTPUTS = 1000;

/**
 * Parses the output file of an execution: `{"KEY": "value"}`, or `{"KEY": {"value": …, "sensitive": true, "description": …, "mount_path":
 * …}}`, which is also what `terraform output -json` writes. Throws Error that says where it is wrong.
 */
export function parseOutputs(text: string): JobOutput[] {
  const entries = Object.entries(readObject(text));
  if (entries.length > MAX_OUTPUTS)
    throw new Error(`it has ${entries.length} outputs: at most ${MAX_OUTPUTS} can be kept`);
  return entries.map(([key, given]) => toOutput(key, given));
}

function readObject(text: string): Record<string, unknown> {
  const wrong = findJsonError(text);
  if (wrong) throw new Error(`it is not JSON: line ${wrong.line}, column ${wrong.column}`);
  const value: unknown = JSON.parse(text);
  if (isObject(value)) return value;
  throw new Error('it must be a JSON object such as {"KEY": "value"}');
}

function toOutput(key: string, given: unknown): JobOutput {
  const at = JSON.stringify(key);
  const {
    value,
    sensitive,
    description,
    mount_path: mountPath,
  } = isObject(given) ? checkFields(given, at) : { value: given };
  if (sensitive !== undefined && typeof sensitive !== 'boolean')
    throw new Error(`${at}: "sensitive" must be true or false`);
  for (const [field, text] of Object.entries({ description, mount_path: mountPath }))
    if (text !== undefined && text !== null && typeof text !== 'string')
      throw new Error(`${at}: "${field}" must be a text`);
  return {
    key,
    value: toText(value, at),
    isSecret: sensitive === true,
    description: (description as string | null | undefined) ?? null,
    mountPath: (mountPath as string | null | undefined) ?? null,
  };
}

function checkFields(given: Record<string, unknown>, at: string): Record<string, unknown> {
  if (!('value' in given)) throw new Error(`${at}: "value" is missing`);
  const unknown = Object.keys(given).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined)
    throw new Error(`${at}: ${JSON.stringify(unknown)} is not allowed here: ${FIELDS.join(', ')} are`);
  return given;
}

/** Converts a value to text: numbers and truth values as they are written; lists and objects, which Terraform has, as JSON. */
function toText(value: unknown, at: string): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) throw new Error(`${at} has no value: leave it out`);
  return JSON.stringify(value);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
