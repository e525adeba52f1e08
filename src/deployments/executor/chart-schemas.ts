import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { contentOf, entriesOf } from '#kernel/packed.ts';
import { readFileOf } from '#kernel/parsing/index.ts';

/** Bytes of a schema, and of an archive within a chart. */
const MOST_SCHEMA = 1024 * 1024;
const MOST_ARCHIVE = 20 * 1024 * 1024;
/** Schemas of a chart with all that it depends on, and archives within archives. */
const MOST_SCHEMAS = 200;
const MOST_DEPTH = 5;

interface Schema {
  name: string;
  text: Buffer;
}

/**
 * Throws an error for people if a schema of a chart refers to something outside of its file. Helm would read it with the rights of this
 * process: files of the machine, and servers that only the machine reaches.
 */
export async function refuseOutsideSchemas(organizationId: string, chart: string): Promise<void> {
  const isFolder = (await stat(chart)).isDirectory();
  const schemas: Schema[] = [];
  if (isFolder) await collectInFolder(chart, schemas);
  else await collectInArchive(await readFile(chart), '', schemas, 1);
  for (const schema of schemas) {
    const [reference] = await readFileOf(organizationId, 'chart-schema', schema);
    if (reference !== undefined)
      throw new Error(
        `${schema.name} of the chart refers to ${JSON.stringify(reference)}, which is not in the file: copy it to "$defs" and refer to it by "#/$defs/…", or add --skip-schema-validation to the arguments of the service.`,
      );
  }
}

const isSchema = (name: string): boolean => path.posix.basename(name) === 'values.schema.json';
const isArchive = (name: string): boolean => /(?:^|\/)charts\/[^/]+\.tgz$/.test(name);

function keep(schemas: Schema[], schema: Schema): void {
  if (schema.text.length > MOST_SCHEMA)
    throw new Error(`${schema.name} of the chart is larger than ${MOST_SCHEMA / 1024} KiB.`);
  if (schemas.push(schema) > MOST_SCHEMAS)
    throw new Error(`The chart has more than ${MOST_SCHEMAS} schemas of values.`);
}

async function collectInFolder(folder: string, schemas: Schema[]): Promise<void> {
  for (const name of (await readdir(folder, { recursive: true })).map((one) => one.split(path.sep).join('/'))) {
    const file = path.join(folder, name);
    if (!isSchema(name) && !isArchive(name)) continue;
    const { size } = await stat(file);
    if (size > MOST_ARCHIVE) throw new Error(`${name} of the chart is larger than ${MOST_ARCHIVE / 1024} KiB.`);
    if (isSchema(name)) keep(schemas, { name, text: await readFile(file) });
    else await collectInArchive(await readFile(file), `${name}/`, schemas, 1);
  }
}

async function collectInArchive(archive: Buffer, within: string, schemas: Schema[], depth: number): Promise<void> {
  if (depth > MOST_DEPTH) throw new Error(`${within} of the chart is in more than ${MOST_DEPTH} archives.`);
  for await (const entry of entriesOf(archive)) {
    const name = `${within}${entry.header.name.replace(/^\.\//, '')}`;
    if (isSchema(name)) keep(schemas, { name, text: await contentOf(entry, MOST_SCHEMA) });
    else if (isArchive(name))
      await collectInArchive(await contentOf(entry, MOST_ARCHIVE), `${name}/`, schemas, depth + 1);
    else entry.resume();
  }
}
