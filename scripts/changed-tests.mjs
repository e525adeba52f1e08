// Finds the tests that are nearest to a change, for `npm run test:changed`.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './prepare.mjs';

/** Names of the tests that have commands of their own. */
const OTHER_PROJECTS = /\.(?:docker|crash|soak|host|program|caddy|pebble)\.test\.ts$/;

/**
 * Returns the test files that changed since the commit, those that import a changed file themselves, and those in its folder; where that
 * has none, those of the nearest folder above. Most tests start the whole application: what imports a file in any number of steps would be
 * the whole suite.
 */
export function findChangedTests(commit) {
  const changed = [
    ...git('diff', '--name-only', '--diff-filter=d', '-z', '--end-of-options', commit, '--'),
    ...git('ls-files', '--others', '--exclude-standard', '-z'),
  ].filter((file) => /^(?:src|test)\/.*\.ts$/.test(file));
  const tests = [...listTests('src'), ...listTests('test')];
  const found = new Set(changed.filter((file) => tests.includes(file)));
  const sources = changed.filter((file) => !found.has(file));
  for (const file of sources) for (const test of testsBeside(file, tests)) found.add(test);
  const imports = sources.map((file) => `'#${file.replace(/^src\//, '')}'`);
  for (const test of tests) {
    const text = readFileSync(path.join(ROOT, test), 'utf8');
    if (imports.some((name) => text.includes(name))) found.add(test);
  }
  return [...found].sort();
}

function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8', timeout: 20_000 });
  if (status !== 0) throw new Error(`git ${args[0]} failed: ${stderr}`);
  return stdout.split('\0').filter((file) => file !== '');
}

const listTests = (folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true })
    .map((name) => path.posix.join(folder, name))
    .filter((name) => name.endsWith('.test.ts') && !OTHER_PROJECTS.test(name));

/** Returns the tests in the folder of a file, or in the nearest one above that has any. */
function testsBeside(file, tests) {
  for (let folder = path.posix.dirname(file); folder !== '.'; folder = path.posix.dirname(folder)) {
    const beside = tests.filter((test) => path.posix.dirname(test) === folder);
    if (beside.length > 0) return beside;
  }
  return [];
}
