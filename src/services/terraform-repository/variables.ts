import { badRequest } from '#kernel/errors.ts';
import { ParsingError, readFileOf, type UserFile } from '#kernel/parsing/index.ts';

/** Variable that a Terraform module declares. `default` is absent if there is none. */
export interface VariableDefinition {
  key: string;
  sensitive: boolean;
  nullable: boolean;
  default?: string | null;
  description: string | null;
  source: string;
}

type Fields = Record<string, unknown>;

/**
 * Returns the variables that the files of a module declare, in the order of the files. Throws 400 that names a file which can't be read.
 */
export async function variablesOf(organizationId: string, files: UserFile[]): Promise<VariableDefinition[]> {
  const declared = await declarationsIn(organizationId, files);
  return declared.map(({ key, source, said }) => ({
    key,
    sensitive: said.sensitive === true,
    nullable: said.nullable !== false,
    ...('default' in said ? { default: textOf(source, said.default) } : {}),
    description: typeof said.description === 'string' ? textOf(source, said.description) : null,
    source,
  }));
}

/**
 * Types whose values are plain text, or convert from it. Values of other types are expressions in Terraform's language, as on its command
 * line.
 */
const PLAIN_TYPES = ['string', 'number', 'bool'];

/** Returns the names of the variables of a module whose type takes expressions: lists, maps, objects, `any`. */
export async function structuredNamesIn(organizationId: string, files: UserFile[]): Promise<string[]> {
  const declared = await declarationsIn(organizationId, files);
  return declared
    .filter(({ source, said: { type } }) => typeof type === 'string' && !PLAIN_TYPES.includes(textOf(source, type)!))
    .map(({ key }) => key);
}

/** Tells whether a text is a list or a map of Terraform's language, and nothing besides. */
export async function isExpression(organizationId: string, text: string): Promise<boolean> {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    const read = await readFileOf(organizationId, 'hcl', { name: 'value', text: `value = ${text.trim()}\n` });
    return Object.keys(objectOf('value', read)).join() === 'value';
  } catch (error) {
    if (error instanceof ParsingError && error.kind === 'fault') return false;
    throw error;
  }
}

/**
 * Returns the values that a file of variables sets. A value that is not a string is answered as JSON, which is an expression of Terraform
 * too.
 */
export async function valuesIn(organizationId: string, file: UserFile): Promise<Record<string, string>> {
  const values = objectOf(file.name, await read(organizationId, file));
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, textOf(file.name, value) ?? 'null']));
}

interface Declaration {
  key: string;
  source: string;
  /** Arguments of the block. */
  said: Fields;
}

/** Reads the declarations of files, one file after the other: an organization reads one at a time anyway. */
async function declarationsIn(organizationId: string, files: UserFile[]): Promise<Declaration[]> {
  const found: Declaration[] = [];
  for (const file of files) {
    const blocks = [objectOf(file.name, await read(organizationId, file)).variable ?? {}].flat();
    for (const block of blocks)
      for (const [key, declaration] of Object.entries(objectOf(file.name, block)))
        for (const said of [declaration].flat())
          found.push({ key, source: file.name, said: objectOf(file.name, said) });
  }
  return found;
}

const read = (organizationId: string, file: UserFile): Promise<unknown> =>
  readFileOf(organizationId, isJson(file.name) ? 'json' : 'hcl', file);

const isJson = (file: string): boolean => file.endsWith('.json');

function objectOf(file: string, value: unknown): Fields {
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw badRequest(`${file}: an object is required where ${JSON.stringify(value).slice(0, 100)} stands`);
  return value as Fields;
}

/**
 * Returns a value as text: a string without the signs that escape a template, an expression as it is written, anything else as JSON. Terraform
 * takes strings of a JSON file literally; in a list or a map, which is an expression then, their templates are escaped.
 */
function textOf(file: string, value: unknown): string | null {
  if (value === null) return null;
  if (isJson(file)) return typeof value === 'string' ? value : JSON.stringify(value).replaceAll(/[$%](?=\{)/g, '$&$&');
  if (typeof value !== 'string') return JSON.stringify(value);
  if (isOneExpression(value)) return value.slice(2, -1);
  return value.replaceAll('$${', '${').replaceAll('%%{', '%{');
}

/** Tells whether a text is one `${…}` as a whole, as the parser writes an expression; a template may have several. */
function isOneExpression(text: string): boolean {
  if (!text.startsWith('${')) return false;
  /** Signs that end what is open, the innermost last. */
  const open = ['}'];
  for (let at = 2; at < text.length; at++) {
    const sign = text[at]!;
    if (sign === open.at(-1)) {
      open.pop();
      if (open.length === 0) return at === text.length - 1;
    } else if (open.at(-1) !== '"') {
      if (sign === '"') open.push('"');
      if (sign === '{') open.push('}');
    } else if (sign === '\\' || text.startsWith('$${', at) || text.startsWith('%%{', at)) at += sign === '\\' ? 1 : 2;
    else if (text.startsWith('${', at) || text.startsWith('%{', at)) {
      open.push('}');
      at++;
    }
  }
  return false;
}
