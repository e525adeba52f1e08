// Checks the language of comments, messages and pages (docs/contributing/language.md). Arguments: the folders to check, all without.
import path from 'node:path';
import { listFiles } from './language/files.ts';
import { findProblems } from './language/rules.ts';

const ROOT = path.join(import.meta.dirname, '..');
const chosen = process.argv.slice(2);

for (const file of listFiles(ROOT)) {
  if (chosen.length > 0 && !chosen.some((prefix) => file.startsWith(prefix))) continue;
  for (const { line, message } of findProblems(ROOT, file)) {
    console.error(`${file}:${line}: ${message}`);
    process.exitCode = 1;
  }
}
if (process.exitCode) console.error('The places above break the rules of docs/contributing/language.md.');
