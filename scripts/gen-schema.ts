// What the migrations make (migrations/schema.sql), read from a freshly migrated database.
import { writeFileSync } from 'node:fs';
import { withFreshDatabase } from '#test/harness/database.ts';
import { listSchema } from '#test/harness/schema.ts';

await withFreshDatabase(async (config) => writeFileSync('migrations/schema.sql', await listSchema(config)));
