// The commands of package.json: test, check, gen, bench. Each runs its programs in a row and stops at the first that fails.
import { runNode } from './run-node.mjs';

const VITEST = 'node_modules/vitest/vitest.mjs';
const TASKS = {
  test: [[VITEST, 'run', '--project', 'fast']],
  'test:exhaustive': [[VITEST, 'run', '--project', 'exhaustive']],
  'test:host': [[VITEST, 'run', '--project', 'host']],
  'test:program': [[VITEST, 'run', '--project', 'program']],
  'test:docker': [[VITEST, 'run', '--project', 'docker']],
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
  ],
  gen: [
    ['scripts/gen-tables.ts'],
    ['scripts/gen-schema.ts'],
    ['scripts/gen-openapi.ts'],
    ['scripts/gen-access.ts'],
    ['scripts/gen-states.ts'],
    ['scripts/gen-kinds.ts'],
    ['scripts/gen-settings.ts'],
    ['scripts/gen-licences.ts'],
  ],
  // Started anew whenever a file that it imports changes; --watch-preserve-output keeps the token of a first start on screen.
  dev: [['--watch', '--watch-preserve-output', 'src/main.ts', 'start']],
  bench: [['bench/run.ts']],
};

const [name, ...rest] = process.argv.slice(2);
const programs = TASKS[name];
if (!programs) {
  console.error(`There is no task ${name}: one of ${Object.keys(TASKS).join(', ')} is wanted.`);
  process.exit(2);
}
for (const [index, program] of programs.entries()) {
  const status = await runNode(index === programs.length - 1 ? [...program, ...rest] : program);
  if (status !== 0) {
    console.error(`\n\`npm run ${name}\` failed at: ${program.join(' ')}`);
    process.exit(status);
  }
}
