import { execFileSync } from 'node:child_process';

/** Files that others wrote, or that are made from something that is checked. */
const LEFT_OUT = [
  'package-lock.json',
  'openapi.json',
  'LICENSE',
  'docs/licences.md',
  'src/platform/database/tables.ts',
  'test/suites/statements.snapshot.sql',
];
/** Migrations that were applied are compared by their checksums: not even their comments change. */
const UNCHANGEABLE = /^migrations\//;
const CHECKED = /\.(ts|mjs|cjs|md|sql|sh)$/;

/** Returns the paths of all files of the project whose language is checked, below the root. */
export function listFiles(root: string): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
  const files = execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1e8 }).split('\0');
  return [...new Set(files)]
    .filter((file) => CHECKED.test(file) && !UNCHANGEABLE.test(file) && !LEFT_OUT.includes(file))
    .sort();
}
