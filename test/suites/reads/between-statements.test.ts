import { AsyncLocalStorage } from 'node:async_hooks';
import { beforeAll, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { sql } from '#platform/database/index.ts';
import type { Route } from '#platform/http/route.ts';
import { useApp } from '#test/harness/app.ts';
import { callExample, exampleOf, undocumented } from '../answers.ts';
import { makeWorld, type World } from '../world.ts';

const faults: string[] = [];
const app = useApp({ QUARTERDECK_LOG_LEVEL: 'error' }, {}, undefined, (line) => {
  const { msg, err } = JSON.parse(line) as Record<string, any>;
  if (msg === 'request failed' && err?.type !== 'AbortError') faults.push(err?.stack);
});

/** Watched request: the number of its statements, and a function that is awaited before each of them. */
interface Watch {
  count: number;
  before(number: number): Promise<void>;
}
const watched = new AsyncLocalStorage<Watch>();

/** Delays each statement of a watched request. Statements over the shared connection are exempt: they come first and find the target. */
function holdStatements(): void {
  const { pool } = app.database;
  const connect = pool.connect.bind(pool) as (taken?: unknown) => Promise<any>;
  // A callback means that `pool.query` asks, which no read does once its target is found.
  (pool as { connect: unknown }).connect = async (taken?: unknown) => {
    if (taken) return connect(taken);
    const client = await connect();
    const watch = watched.getStore();
    if (!watch) return client;
    return new Proxy(client, {
      get: (target, key) => {
        if (key !== 'query') return typeof target[key] === 'function' ? target[key].bind(target) : target[key];
        return async (statement: unknown) => {
          await watched.exit(() => watch.before(++watch.count));
          return target.query(statement);
        };
      },
    });
  };
}

/** Tables that keep their rows, so that the organization and the caller still exist. */
const KEPT = ['organization', 'api_token', 'api_token_organization', 'member', 'role', 'access_version'];

/** Returns functions that delete all other rows of an organization at once, and restore them. */
async function makeRemover(organizationId: string) {
  const { rows } = await sql<{ table: string; columns: string }>`
    select c.relname as table, string_agg(quote_ident(a.attname), ', ') filter (where a.attgenerated = '') as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    group by c.relname having bool_or(a.attname = 'organization_id')`.execute(app.db);
  const own = sql.lit(organizationId);
  const tables: { table: string; columns: string }[] = [];
  for (const row of rows.filter(({ table }) => !KEPT.includes(table))) {
    const name = sql.table(`kept_${row.table}`);
    await sql`create table ${name} as select * from ${sql.table(row.table)} where organization_id = ${own}`.execute(
      app.db,
    );
    const { rows: some } = await sql`select 1 from ${name} limit 1`.execute(app.db);
    if (some.length > 0) tables.push(row);
  }
  const inOne = async (statements: string[]) => {
    const text = statements.join('; ');
    await app.database.pool.query(`begin; set local session_replication_role = replica; ${text}; commit`);
  };
  const removals = tables.map(({ table }) => `delete from ${table} where organization_id = '${organizationId}'`);
  const returns = tables.map(
    ({ table, columns }) =>
      `insert into ${table} (${columns}) overriding system value select ${columns} from kept_${table}`,
  );
  // Rows that a read wrote in the meantime are removed with the rest.
  return { remove: () => inOne(removals), putBack: () => inOne([...removals, ...returns]) };
}

let world: World;
let things: Awaited<ReturnType<typeof makeRemover>>;
beforeAll(async () => {
  world = await makeWorld(app);
  things = await makeRemover(world.organizationId);
  holdStatements();
});

const reads = allRoutes().filter((route) => route.method === 'GET' && !route.readsOnlyTarget);

/** Returns the statements before which the subject is removed. In a transaction, the first ones begin it and find the target. */
const placesOf = (route: Route): number[] => (route.transaction === false ? [1, 2] : [3]);
const read = (route: Route) => callExample(world.admin, world, route, exampleOf(world, route));

/** Returns the answer to a read whose subject is removed before its nth statement; null if it has fewer. */
async function removedBefore(route: Route, nth: number) {
  let removed = false;
  const before = async (number: number) => {
    if (number !== nth) return;
    removed = true;
    await things.remove();
  };
  try {
    const answer = await watched.run({ count: 0, before }, () => read(route));
    return removed ? answer : null;
  } finally {
    if (removed) await things.putBack();
  }
}

test.each(reads.map((route) => [route.id, route] as const))(
  '%s answers whole or 404 where its subject is deleted between two of its statements',
  async (_id, route) => {
    const expected = exampleOf(world, route).refused ?? 200;
    for (const nth of placesOf(route)) {
      const answer = await removedBefore(route, nth);
      if (!answer) break;
      expect(faults.splice(0)).toEqual([]);
      const allowed = [expected, 200, 400, 404, 410, ...(route.errors ?? [])];
      expect(allowed, JSON.stringify(answer.body)).toContain(answer.status);
      expect(undocumented(route, answer)).toBeUndefined();
    }
  },
);
