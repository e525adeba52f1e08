import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiCalls, isOperation, shellBlocks, syntaxErrors } from '#test/harness/pages.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const TOP = 'src|test|scripts|migrations|docs|examples|bench|deploy';
/**
 * Matches paths below the folders of the repository: `src/main.ts`, `docs/decisions/`, `migrations/0001_organization.sql`; `*` stands for a
 * part of a name.
 */
const IN_FOLDER = new RegExp(`^(?:\\./)?(?:${TOP})/[\\w@./*-]*$`);
/** Matches a file at the top, such as `openapi.json`. */
const AT_TOP = /^(?:\.\/)?(?:package|package-lock|tsconfig|openapi)\.json$|^(?:\.\/)?(?:[A-Z]+\.md|\w+\.config\.ts)$/;

const files = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: ROOT })].filter(
  (file) => existsSync(path.join(ROOT, file)),
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

const { paths } = JSON.parse(readFileSync(path.join(ROOT, 'openapi.json'), 'utf8'));
const blocks = files.flatMap((file) => shellBlocks(file));

describe('the commands of the documentation', () => {
  test('are run by a test, or say why they are not', () => {
    expect(blocks.length).toBeGreaterThan(50);
    const unexplained = blocks.filter(({ notRun }) => notRun !== undefined && notRun.length < 10);
    expect(unexplained.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
    const marks = files.map(
      (file) => readFileSync(path.join(ROOT, file), 'utf8').match(/^<!-- not run(?=[^\n]*\n\n```sh)/gm)?.length ?? 0,
    );
    const marked = blocks.filter(({ notRun }) => notRun !== undefined).length;
    expect(
      marks.reduce((sum, count) => sum + count, 0),
      'each mark stands right above a block',
    ).toBe(marked);
  });

  test('are commands that bash can read', () => {
    const wrong = blocks.map(({ page, line, commands }) => ({ at: `${page}:${line}`, error: syntaxErrors(commands) }));
    expect(wrong.filter(({ error }) => error !== '')).toEqual([]);
  });

  test('ask only for operations of openapi.json', () => {
    const calls = blocks.flatMap(({ page, line, commands }) =>
      apiCalls(commands).map((call) => ({ at: `${page}:${line}`, ...call })),
    );
    expect(calls.length).toBeGreaterThan(60);
    expect(calls.filter((call) => !isOperation(call, paths))).toEqual([]);
  });

  test('would be refused if they named an operation that is not there', () => {
    const known = (method: string, where: string) => isOperation({ method, path: where }, paths);
    expect(known('GET', '/application/$APPLICATION/status')).toBe(true);
    expect(known('DELETE', '/application/$APPLICATION/status')).toBe(false);
    expect(known('GET', '/application/$APPLICATION/nothing')).toBe(false);
    expect(apiCalls(`X=$(api POST "/project/$P/environment" '{}')\ncurl -H "$A" "$QD/organization?a=b" -d 1`)).toEqual([
      { method: 'POST', path: '/project/$P/environment' },
      { method: 'POST', path: '/organization' },
    ]);
  });
});

/** Messages in the headings of the page on troubleshooting, each as its fixed parts. */
const quoted = [...readFileSync(path.join(ROOT, 'docs/troubleshooting.md'), 'utf8').matchAll(/^### (`+)(.+)\1$/gm)].map(
  ([, , message]) => ({
    message: message!,
    parts: message!
      .split('…')
      .map((part) => part.trim())
      .filter((part) => /\w/.test(part)),
  }),
);

describe('the page on troubleshooting', () => {
  const sources = globSync(['src/**/*.ts', 'scripts/*.mjs'], { cwd: ROOT, exclude: (name) => /\.test\.ts$/.test(name) })
    // A message of several literals is one text; a literal may contain escaped quotation marks.
    .map((file) => readFileSync(path.join(ROOT, file), 'utf8').replace(/[`'"]\s*\+\s*[`'"]|\\(?=[`'"])/g, ''));

  test('quotes at least 25 messages, each with its cause and its cure', () => {
    expect(quoted.length).toBeGreaterThanOrEqual(25);
    const sections = readFileSync(path.join(ROOT, 'docs/troubleshooting.md'), 'utf8')
      .split(/^###? /m)
      .slice(1);
    const lacking = sections.filter(
      (section) => section.startsWith('`') && !/\*\*Cause\.\*\*.*\*\*Cure\.\*\*/.test(section),
    );
    expect(lacking).toEqual([]);
  });

  test('quotes only messages whose parts one file of the program has', () => {
    const unknown = quoted.filter(
      ({ parts }) => !sources.some((source) => parts.every((part) => source.includes(part))),
    );
    expect(unknown.map(({ message }) => message)).toEqual([]);
  });
});

describe('the documentation', () => {
  test('names only files that exist', () => {
    expect(files.length).toBeGreaterThan(0);
    const missing = mentioned.filter(({ name, from }) =>
      name.includes('*') ? globSync(name, { cwd: from }).length === 0 : !existsSync(path.join(from, name)),
    );
    expect(missing.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  });

  test('is listed in docs/README.md, every page of it', () => {
    const index = 'docs/README.md';
    const listed = mentioned.filter(({ file }) => file === index).map(({ name }) => path.join('docs', name));
    const pages = globSync('docs/**/*.md', { cwd: ROOT }).filter((file) => !file.startsWith('docs/decisions/'));
    expect(pages.filter((page) => page !== index && !listed.includes(page))).toEqual([]);
  });

  test('fits on one screen in README.md, and leads to the index and the page for contributors', () => {
    const text = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
    expect(text.split('\n').length).toBeLessThanOrEqual(70);
    const listed = mentioned.filter(({ file }) => file === 'README.md').map(({ name }) => name);
    expect(listed).toEqual(expect.arrayContaining(['docs/README.md', 'CONTRIBUTING.md', 'CHANGELOG.md']));
  });
});
