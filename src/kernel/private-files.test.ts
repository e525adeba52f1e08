import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openNew, readJson, writeAtomically } from '#kernel/private-files.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(path.join(tmpdir(), 'qd-files-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const modeOf = (file: string) => statSync(file).mode & 0o777;

test.each([false, true])('a file is replaced as a whole, and only this account reads it (synced: %s)', (isSynced) => {
  const file = path.join(folder, 'file');
  writeFileSync(file, 'old', { mode: 0o644 });
  writeAtomically(file, 'new', { isSynced });
  expect([readFileSync(file, 'utf8'), modeOf(file), readdirSync(folder)]).toEqual(['new', 0o600, ['file']]);
});

test('a temporary file that a killed process left is not written into: its mode and content are gone', () => {
  const file = path.join(folder, 'file');
  const left = `${file}.${process.pid}.new`;
  writeFileSync(left, 'a longer content than the new one');
  chmodSync(left, 0o644);
  writeAtomically(file, 'new');
  expect([readFileSync(file, 'utf8'), modeOf(file), readdirSync(folder)]).toEqual(['new', 0o600, ['file']]);
});

test('a failed replacement leaves the old content and no other file', () => {
  const file = path.join(folder, 'file');
  mkdirSync(path.join(file, 'not empty'), { recursive: true });
  expect(() => writeAtomically(file, 'new')).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  expect(readdirSync(folder)).toEqual(['file']);
});

test('an absent JSON file is null, and a broken one an error', () => {
  const file = path.join(folder, 'file.json');
  expect(readJson(file)).toBeNull();
  writeAtomically(file, '{"a":1}');
  expect(readJson(file)).toEqual({ a: 1 });
  writeFileSync(file, '{"a":');
  expect(() => readJson(file)).toThrow(SyntaxError);
});

test('a new file is there before anything is written, for this account alone, and never in the place of another', async () => {
  const file = path.join(folder, 'file');
  const writer = openNew(file);
  expect([existsSync(file), modeOf(file)]).toEqual([true, 0o600]);
  expect(() => openNew(file)).toThrow(/EEXIST/);
  writer.end('content');
  await once(writer, 'close');
  expect(readFileSync(file, 'utf8')).toBe('content');
});

test('no file is written by a writer that makes it later', () => {
  const own = 'src/kernel/private-files.ts';
  const sources = globSync('src/**/*.ts').filter((name) => !name.endsWith('.test.ts') && name !== own);
  expect(sources.length).toBeGreaterThan(500);
  expect(sources.filter((name) => readFileSync(name, 'utf8').includes('createWriteStream('))).toEqual([]);
});
