// The commands of package.json: test, check, gen, bench. Each runs its programs in a row and stops at the first that fails.
import { findChangedTests } from './changed-tests.mjs';
import { runNode } from './run-node.mjs';

const VITEST = 'node_modules/vitest/vitest.mjs';
const TASKS = {
  test: [[VITEST, 'run', '--project', 'fast']],
  'test:slow': [[VITEST, 'run', '--project', 'slow']],
  'test:exhaustive': [[VITEST, 'run', '--project', 'exhaustive']],
  'test:host': [[VITEST, 'run', '--project', 'host']],
  'test:program': [[VITEST, 'run', '--project', 'program']],
  'test:docker': [[VITEST, 'run', '--project', 'docker']],
  'test:kubernetes': [[VITEST, 'run', '--project', 'kubernetes']],
  'test:crash': [[VITEST, 'run', '--project', 'crash']],
  'test:soak': [[VITEST, 'run', '--project', 'soak']],
  check: [
    ['node_modules/typescript/bin/tsc', '-p', '.'],
    ['node_modules/oxlint/bin/oxlint', '--type-aware', '--quiet'],
    [
      '--import',
      './scripts/typescript-for-tools.mjs',
      'node_modules/dependency-cruiser/bin/dependency-cruise.mjs',
      'src',
    ],
    ['node_modules/knip/bin/knip.js', '--no-progress'],
    ['node_modules/prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'],
    ['scripts/check-language.ts'],
  ],
  gen: [
    ['scripts/gen-tables.ts'],
    ['scripts/gen-schema.ts'],
    ['scripts/gen-openapi.ts'],
    ['scripts/gen-access.ts'],
    ['scripts/gen-states.ts'],
    ['scripts/gen-causes.ts'],
    ['scripts/gen-kinds.ts'],
    ['scripts/gen-settings.ts'],
    ['scripts/gen-chart.ts'],
    ['scripts/gen-licences.ts'],
  ],
  // Started anew whenever a file that it imports changes; --watch-preserve-output keeps the token of a first start on screen.
  dev: [['--watch', '--watch-preserve-output', 'src/main.ts', 'start']],
  bench: [['bench/run.ts']],
};

/** The tests of what has changed since a commit, which the first argument may name: `npm run test:changed -- main`. */
function runChanged([commit = 'HEAD', ...options]) {
  const files = findChangedTests(commit);
  const projects = ['--project', 'fast', '--project', 'slow'];
  if (files.length > 0) return [[VITEST, 'run', ...projects, '--passWithNoTests', ...files, ...options]];
  console.log(`No test belongs to what has changed since ${commit}.`);
  process.exit(0);
}

const [name, ...rest] = process.argv.slice(2);
// A file that is named is tested, however slow its tests are.
if (name === 'test' && rest.some((option) => /^[^-].*\//.test(option))) TASKS.test[0].push('--project', 'slow');
const programs = name === 'test:changed' ? runChanged(rest.splice(0)) : TASKS[name];
if (!programs) {
  console.error(`There is no task ${name}: it must be one of test:changed, ${Object.keys(TASKS).join(', ')}.`);
  process.exit(2);
}
for (const [index, program] of programs.entries()) {
  const status = await runNode(index === programs.length - 1 ? [...program, ...rest] : program);
  if (status !== 0) {
    console.error(`\n\`npm run ${name}\` failed at: ${program.join(' ')}`);
    process.exit(status);
  }
}
