import sjson from 'secure-json-parse';
import { badRequest } from '#kernel/errors.ts';
import { HclError, parseHcl, plainValue, type Body } from '#services/terraform-repository/hcl.ts';

/** A file of a repository. */
export interface SourceFile {
  path: string;
  text: string;
}

/** A variable that a Terraform module declares. `default` is left out where there is none. */
export interface VariableDefinition {
  key: string;
  sensitive: boolean;
  nullable: boolean;
  default?: string | null;
  description: string | null;
  source: string;
}

/** Variables that the files of a module declare, in the order of the files. Throws 400 that names a file which can't be read. */
export const variablesOf = (files: SourceFile[]): VariableDefinition[] =>
  files.flatMap((file) =>
    readingFile(file, () => (file.path.endsWith('.json') ? declaredInJson(file) : declared(file))),
  );

function declared({ path, text }: SourceFile): VariableDefinition[] {
  return parseHcl(text)
    .blocks.filter((block) => block.type === 'variable' && block.labels.length === 1)
    .map(({ labels, body }) => {
      const said = valuesOf(body);
      return {
        key: labels[0]!,
        sensitive: said.get('sensitive') === 'true',
        nullable: said.get('nullable') !== 'false',
        ...(said.has('default') ? { default: said.get('default')! } : {}),
        description: said.get('description') ?? null,
        source: path,
      };
    });
}

const valuesOf = (body: Body): Map<string, string | null> =>
  new Map(body.attributes.map(({ name, expression }) => [name, plainValue(expression)]));

function declaredInJson({ path, text }: SourceFile): VariableDefinition[] {
  const declarations = [objectOf(sjson.parse(text)).variable ?? {}].flat();
  return declarations.flatMap((declaration) =>
    Object.entries(objectOf(declaration)).map(([key, value]) => {
      const said = objectOf([value].flat()[0]);
      return {
        key,
        sensitive: said.sensitive === true,
        nullable: said.nullable !== false,
        ...('default' in said ? { default: textOf(said.default) } : {}),
        description: typeof said.description === 'string' ? said.description : null,
        source: path,
      };
    }),
  );
}

/** Types whose values are plain text (or are made of it); every other is written in Terraform's language, as on its command line. */
const PLAIN_TYPES = ['string', 'number', 'bool'];

/** Names of the variables that a module declares with a type of which a value is an expression: lists, maps, objects, `any`. */
export const structuredNamesIn = (files: SourceFile[]): string[] =>
  files.flatMap((file) =>
    readingFile(file, () => (file.path.endsWith('.json') ? typesInJson(file) : typesIn(file)))
      .filter(({ type }) => type !== undefined && !PLAIN_TYPES.includes(type))
      .map(({ key }) => key),
  );

const typesIn = ({ text }: SourceFile): { key: string; type: string | undefined }[] =>
  parseHcl(text)
    .blocks.filter((block) => block.type === 'variable' && block.labels.length === 1)
    .map(({ labels, body }) => ({ key: labels[0]!, type: valuesOf(body).get('type') ?? undefined }));

const typesInJson = ({ text }: SourceFile): { key: string; type: string | undefined }[] =>
  [objectOf(sjson.parse(text)).variable ?? {}].flat().flatMap((declaration) =>
    Object.entries(objectOf(declaration)).map(([key, value]) => {
      const { type } = objectOf([value].flat()[0]);
      return { key, type: typeof type === 'string' ? type : undefined };
    }),
  );

/** Whether a text is a list or a map of Terraform's language, and nothing besides. */
export function isExpression(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    const { attributes, blocks } = parseHcl(`value = ${text.trim()}\n`);
    return attributes.length === 1 && blocks.length === 0;
  } catch (error) {
    if (error instanceof HclError) return false;
    throw error;
  }
}

/** The values that a file of variables sets. What is not a string is answered as it is written. */
export const valuesIn = (file: SourceFile): Record<string, string> =>
  readingFile(file, () => {
    const pairs: [string, string | null][] = file.path.endsWith('.json')
      ? Object.entries(objectOf(sjson.parse(file.text))).map(([key, value]) => [key, textOf(value)])
      : [...valuesOf(assignmentsIn(file))];
    return Object.fromEntries(pairs.map(([key, value]) => [key, value ?? 'null']));
  });

function assignmentsIn(file: SourceFile): Body {
  const body = parseHcl(file.text);
  if (body.blocks.length > 0) throw new HclError('only assignments stand in a file of variables', 1);
  return body;
}

function objectOf(value: unknown): Record<string, unknown> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new HclError('an object is wanted', 1);
  return value as Record<string, unknown>;
}

const textOf = (value: unknown): string | null =>
  value === null || typeof value === 'string' ? value : JSON.stringify(value);

function readingFile<T>(file: SourceFile, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof HclError || error instanceof SyntaxError) throw badRequest(`${file.path}: ${error.message}`);
    throw error;
  }
}
