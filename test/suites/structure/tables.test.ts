import { expect, test } from 'vitest';
import { useApp } from '#test/harness/app.ts';
import { findTableUses } from './sql-of-modules.ts';
import { OWNERS, READS, WRITES, type Exceptions } from './tables-of-modules.ts';

const app = useApp();

const listTables = async (): Promise<string[]> => {
  const { rows } = await app.database.pool.query<{ name: string }>(
    `select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
     and not c.relispartition order by 1`,
  );
  return rows.map(({ name }) => name);
};

const pairs = (all: Exceptions[]): string[] =>
  all.flatMap(({ uses }) =>
    Object.entries(uses).flatMap(([module, tables]) => tables.map((one) => `${module}: ${one}`)),
  );

/** Returns the uses of tables by modules that do not own them, with those that change rows apart. */
async function listForeignUses() {
  const owned = new Set(Object.entries(OWNERS).flatMap(([module, tables]) => tables.map((one) => `${module}: ${one}`)));
  const uses = findTableUses(new Set(await listTables()));
  const foreign = (some: typeof uses) =>
    [...new Set(some.map(({ module, table }) => `${module}: ${table}`))].filter((pair) => !owned.has(pair));
  const writes = foreign(uses.filter((use) => use.writes));
  return { uses, writes, reads: foreign(uses).filter((pair) => !writes.includes(pair)) };
}

test('every table belongs to exactly one module', async () => {
  expect(Object.values(OWNERS).flat().sort()).toEqual((await listTables()).sort());
});

test('a module names only its own tables in SQL, but for the exceptions, each of which is needed', async () => {
  const { uses, reads, writes } = await listForeignUses();
  expect(uses.length).toBeGreaterThan(400);
  expect(reads.sort()).toEqual(pairs(READS).sort());
  expect(writes.sort()).toEqual(pairs(WRITES).sort());
});

test('each exception has a reason', () => {
  for (const { reason } of [...READS, ...WRITES]) expect(reason).toMatch(/^[A-Z].{30,}\.$/);
});
