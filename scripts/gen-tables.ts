// Types of the tables (src/platform/database/tables.ts), read from a freshly migrated database.
import { execa } from 'execa';
import { writeFileSync, readFileSync } from 'node:fs';
import { withFreshDatabase } from '#test/harness/database.ts';

const FILE = 'src/platform/database/tables.ts';

await withFreshDatabase(async (config) => {
  const url = `postgres://${config.user}:${config.password}@localhost/${config.database}?host=${encodeURIComponent(config.host!)}`;
  const mapping = { int8: 'Int8Column', jsonb: 'JsonColumn' };
  await execa('node_modules/.bin/kysely-codegen', [
    '--dialect',
    'postgres',
    '--url',
    url,
    '--out-file',
    FILE,
    '--log-level',
    'error',
    '--exclude-pattern',
    'audit_{event,seal}_*',
    '--type-mapping',
    JSON.stringify(mapping),
  ]);
  const text = readFileSync(FILE, 'utf8').replace(
    /from ['"]kysely['"];/,
    "from 'kysely';\nimport type { Int8Column, JsonColumn } from './json.ts';",
  );
  writeFileSync(FILE, text);
});
await execa('node_modules/.bin/prettier', ['--write', FILE]);
