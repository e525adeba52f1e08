// Checks the language of comments, messages and pages (docs/contributing/language.md). `--write` lowers the list of exceptions.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { listFiles } from './language/files.ts';
import { findProblems, type Problem } from './language/rules.ts';

const ROOT = path.join(import.meta.dirname, '..');
const EXCEPTIONS = path.join(ROOT, 'scripts/language/exceptions.json');

/** Number of known problems by file. It only gets smaller. */
type Exceptions = Record<string, number>;

const exceptions = existsSync(EXCEPTIONS) ? (JSON.parse(readFileSync(EXCEPTIONS, 'utf8')) as Exceptions) : {};
const found = new Map<string, Problem[]>();
for (const file of listFiles(ROOT)) {
  const problems = findProblems(ROOT, file);
  if (problems.length > 0) found.set(file, problems);
}
const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + count, 0);
const total = sum([...found.values()].map((problems) => problems.length));
const allowed = sum(Object.values(exceptions));

if (process.argv.includes('--list')) {
  const chosen = process.argv.slice(process.argv.indexOf('--list') + 1);
  for (const [file, problems] of found)
    if (chosen.length === 0 || chosen.some((prefix) => file.startsWith(prefix))) print(file, problems);
} else if (process.argv.includes('--write')) {
  if (existsSync(EXCEPTIONS) && total > allowed)
    fail(`There are ${total} problems, ${total - allowed} more than the list allows: mend those in what you changed.`);
  const counts = Object.fromEntries([...found].map(([file, problems]) => [file, problems.length]));
  writeFileSync(EXCEPTIONS, `${JSON.stringify(counts, null, 2)}\n`);
  console.log(`${total} problems in ${found.size} files (${allowed} before).`);
} else {
  const worse = [...found].filter(([file, problems]) => problems.length > (exceptions[file] ?? 0));
  for (const [file, problems] of worse) print(file, problems);
  if (worse.length > 0)
    fail(
      'The comments, messages or pages above break the rules of docs/contributing/language.md. After a file was moved: node scripts/check-language.ts --write',
    );
  const better = Object.entries(exceptions).filter(([file, count]) => (found.get(file)?.length ?? 0) < count);
  if (better.length > 0)
    fail(
      `${better.length} files are better than scripts/language/exceptions.json says: node scripts/check-language.ts --write`,
    );
}

function print(file: string, problems: Problem[]): void {
  for (const { line, message } of problems) console.error(`${file}:${line}: ${message}`);
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
