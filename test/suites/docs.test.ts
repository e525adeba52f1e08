import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../..');
const TOP = 'src|test|scripts|migrations|docs|examples|bench';
/** `src/main.ts`, `docs/decisions/`, `migrations/0001_organization.sql`; `*` stands for a part of a name. */
const IN_FOLDER = new RegExp(`^(?:\\./)?(?:${TOP})/[\\w@./*-]*$`);
/** A file at the top, such as `openapi.json`. */
const AT_TOP = /^(?:\.\/)?(?:package|package-lock|tsconfig|openapi)\.json$|^(?:\.\/)?(?:[A-Z]+\.md|\w+\.config\.ts)$/;

const files = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT })].filter((file) =>
  existsSync(path.join(ROOT, file)),
);

const mentioned = files.flatMap((file) => {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  const inCode = [...text.matchAll(/`([^`\n]+)`/g)].map((match) => match[1]!);
  const named = inCode
    .filter((name) => IN_FOLDER.test(name) || AT_TOP.test(name))
    .map((name) => ({ file, name, from: ROOT }));
  const linked = [...text.matchAll(/\]\((?!\w+:|#)([^)\s#]+)/g)].map((match) => ({
    file,
    name: match[1]!,
    from: path.join(ROOT, path.dirname(file)),
  }));
  return [...named, ...linked];
});

describe('the documentation', () => {
  test('names only files that exist', () => {
    expect(files.length).toBeGreaterThan(0);
    const missing = mentioned.filter(({ name, from }) =>
      name.includes('*') ? globSync(name, { cwd: from }).length === 0 : !existsSync(path.join(from, name)),
    );
    expect(missing.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  });

  test('is listed in README.md, every page of it', () => {
    const listed = mentioned.filter(({ file }) => file === 'README.md').map(({ name }) => name);
    const pages = globSync('docs/**/*.md', { cwd: ROOT }).filter((file) => !file.startsWith('docs/decisions/'));
    expect(pages.filter((page) => !listed.includes(page))).toEqual([]);
  });
});
