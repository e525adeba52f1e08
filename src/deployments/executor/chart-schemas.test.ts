import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { refuseOutsideSchemas } from '#deployments/executor/chart-schemas.ts';
import { newId } from '#kernel/ids.ts';

type Files = Record<string, string | Buffer>;

async function packed(files: Files): Promise<Buffer> {
  const archive = pack();
  for (const [name, content] of Object.entries(files)) archive.entry({ name }, content);
  archive.finalize();
  const parts: Buffer[] = [];
  for await (const part of archive) parts.push(part as Buffer);
  return gzipSync(Buffer.concat(parts));
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'qd-schemas-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** Checks an archive with these entries. */
async function checkArchiveOf(files: Files): Promise<void> {
  const file = path.join(await newFolder(), 'chart.tgz');
  await writeFile(file, await packed(files));
  await refuseOutsideSchemas(newId(), file);
}

/** Checks a chart as an archive of a repository, and as a folder of git. */
async function check(files: Files): Promise<void> {
  const folder = await newFolder();
  const file = path.join(folder, 'chart.tgz');
  await writeFile(
    file,
    await packed(Object.fromEntries(Object.entries(files).map(([name, text]) => [`web/${name}`, text]))),
  );
  const chart = path.join(folder, 'chart');
  for (const [name, text] of Object.entries({ 'Chart.yaml': 'name: web', ...files })) {
    await mkdir(path.dirname(path.join(chart, name)), { recursive: true });
    await writeFile(path.join(chart, name), text);
  }
  const [inArchive, inFolder] = await Promise.allSettled([
    refuseOutsideSchemas(newId(), file),
    refuseOutsideSchemas(newId(), chart),
  ]);
  expect(inFolder.status).toBe(inArchive.status);
  if (inFolder.status === 'rejected') throw inFolder.reason;
}

const schemaWith = (part: object) => JSON.stringify({ type: 'object', properties: { a: { items: [part] } } });

describe('a schema of a chart', () => {
  test.each([
    ['a reference within the file', { $ref: '#/$defs/a' }],
    ['a property of that name', { properties: { $ref: { type: 'string' } } }],
    ['the schema of schemas', { $schema: 'https://json-schema.org/draft/2020-12/schema' }],
    ['that of an older draft', { $schema: 'http://json-schema.org/draft-07/schema#' }],
    ['that of no draft, as many charts have it', { $schema: 'http://json-schema.org/schema#' }],
  ])('with %s is taken', async (_what, part) => {
    await check({ 'values.schema.json': schemaWith(part) });
  });

  test.each([
    ['a file of the machine', { $ref: 'file:///etc/passwd' }],
    ['a server of the machine', { $ref: 'http://127.0.0.1:8081/metrics#/a' }],
    ['a file beside it', { $ref: 'other.json' }],
    ['a dynamic reference', { $dynamicRef: 'http://localhost/a' }],
    ['a schema of schemas elsewhere', { $schema: 'http://169.254.169.254/latest' }],
    ['a server with a similar name', { $schema: 'http://json-schema.org.example.com/schema#' }],
    ['a server behind a name', { $schema: 'http://json-schema.org@127.0.0.1/schema#' }],
  ])('that refers to %s is refused with the reference and the remedy', async (_what, part) => {
    const [reference] = Object.values(part);
    await expect(check({ 'values.schema.json': schemaWith(part) })).rejects.toThrow(
      `values.schema.json of the chart refers to ${JSON.stringify(reference)}`,
    );
  });

  test('is looked at in charts that the chart depends on, packed or not, and with escaped keys', async () => {
    const hostile = '{"\\u0024ref": "file:///etc/passwd"}';
    await expect(check({ 'charts/db/values.schema.json': hostile })).rejects.toThrow('file:///etc/passwd');
    const inner = await packed({ 'db/values.schema.json': hostile });
    await expect(check({ 'charts/db.tgz': inner })).rejects.toThrow('charts/db.tgz/db/values.schema.json');
    const outer = await packed({ 'db/charts/inner.tgz': inner });
    await expect(check({ 'charts/outer.tgz': outer })).rejects.toThrow('file:///etc/passwd');
  });

  test.each([
    ['./', 'c/charts/./s.tgz'],
    ['an empty part', 'c/charts//s.tgz'],
  ])('is not hidden in an archive whose name has %s', async (_what, name) => {
    const hidden = await packed({ 's/values.schema.json': '{"$ref": "file:///etc/passwd"}' });
    await expect(checkArchiveOf({ [name]: hidden })).rejects.toThrow('without empty parts');
  });

  test('is not hidden by a name that helm reads as another one, in an archive within a chart', async () => {
    const hidden = await packed({ 's\\values.schema.json': '{"$ref": "file:///etc/passwd"}' });
    await expect(check({ 'charts/s.tgz': hidden })).rejects.toThrow('leads out of the chart');
  });

  test('that is no JSON, or too large, is refused', async () => {
    await expect(check({ 'values.schema.json': '{' })).rejects.toThrow('it is not JSON');
    await expect(check({ 'values.schema.json': ' '.repeat(1024 * 1024 + 1) })).rejects.toThrow('larger than 1024 KiB');
  });
});
