import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { build, release, type Stage } from './build.ts';
import type { Answer, Place } from './place.ts';

const TIMEOUT_MS = 480_000;

/** Tables that keep rows about deleted things: the audit log for good, streams and tombstones for their retention. */
const KEPT_TABLES = /^(audit_|stream_event|tombstone)/;

/** Returns the application's answer once everything has reached it. */
function expected({ terraform, images }: Stage, place: Place, said: Said): Answer {
  const { word, stock, visits, page } = said;
  const note = terraform ? `${word} for postgresql-z${place.idOf('store').slice(0, 8)}` : undefined;
  const schema = `tables with ${note ?? 'no note'}`;
  return {
    release: said.release,
    ...(note ? { note } : {}),
    schema,
    events: said.events,
    ...(images
      ? { stock: String(stock), visits: `:${visits}`, page: `page ${page ?? said.release} of ${schema}` }
      : {}),
  };
}

interface Said {
  release: string;
  word: string;
  events: string[];
  /** Number of runs of the MySQL job (`stock`), and of requests to the application (`visits`). */
  stock: number;
  visits: number;
  page?: string;
}

/** Files below the data directory, without those of the control plane itself. */
const filesOf = (dataDir: string): string[] =>
  readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => path.relative(dataDir, path.join(parentPath, name)))
    .filter(
      (name) =>
        !/^(postgres|log|audit-heads|proxy\/(compiled|requests|caddy\/requests)|host\/(skeleton-|compiled|passwd-))/.test(
          name,
        ),
    )
    .toSorted();

/** Returns the tables that still contain one of these ids, with the number of rows. */
async function rowsAbout({ program }: Stage, ids: string[]): Promise<string[]> {
  const { db } = program.running.base.engineDatabase;
  const { rows } = await sql<{ table: string; column: string }>`
    select c.table_name as table, c.column_name as column from information_schema.columns c
    join information_schema.tables t using (table_schema, table_name)
    where table_schema = 'public' and t.table_type = 'BASE TABLE' and c.data_type = 'uuid'`.execute(db);
  const found: string[] = [];
  for (const { table, column } of rows) {
    const query = sql<{
      n: number;
    }>`select count(*)::int as n from ${sql.table(table)} where ${sql.ref(column)} = any(${ids})`;
    const { n } = (await query.execute(db)).rows[0]!;
    if (n > 0 && !KEPT_TABLES.test(table)) found.push(`${table}.${column}: ${n}`);
  }
  return found.toSorted();
}

/** Tests the life of an environment that has every kind, on the runtime of the stage. */
export function testWholeEnvironment(given: () => Stage): void {
  test(
    'an environment with every kind is deployed, changed, stopped, restarted, rolled back, cloned and deleted, and leaves nothing',
    async () => {
      const stage = given();
      const { program } = stage;
      const before = { machine: await stage.machine(), files: filesOf(program.dataDir) };
      const { place, sources } = await build(stage);
      const answers = async (at: Place, said: Said) => expect(await at.answer()).toEqual(expected(stage, at, said));

      const first = await place.act('deploy', 'DEPLOYED');
      await answers(place, { release: '1', word: 'first note', events: ['up'], stock: 1, visits: 1 });
      await place.tick();
      await answers(place, { release: '1', word: 'first note', events: ['up', 'tick'], stock: 1, visits: 2 });

      await release(stage, sources, '2');
      await change(stage, place);
      await place.act('deploy', 'DEPLOYED');
      const second: Said = { release: '2', word: 'second note', events: ['up', 'tick', 'up'], stock: 2, visits: 3 };
      await answers(place, second);

      await place.act('stop', 'STOPPED');
      expect([404, 503]).toContain(await place.answer());
      expect(await place.runs('tables')).toEqual(['STOP SUCCEEDED', 'START SUCCEEDED', 'START SUCCEEDED']);
      await place.act('deploy', 'DEPLOYED');
      const third: Said = { ...second, events: [...second.events, 'down', 'up'], stock: 3, visits: 4 };
      await answers(place, third);

      const idsOf = (...names: string[]) =>
        names.filter((name) => place.services[name]).map((name) => place.idOf(name));
      await place.act('service/restart-service', 'RESTARTED', {
        application_ids: idsOf('web'),
        container_ids: idsOf('page'),
        database_ids: idsOf('store', 'cache', 'goods'),
      });
      await answers(place, { ...third, visits: 5 });

      await place.act('rollback', 'DEPLOYED', { execution_id: first });
      const back: Said = { release: '1', word: 'first note', events: [...third.events, 'up'], stock: 4, visits: 6 };
      await answers(place, back);

      const clone = await place.clone('second');
      await clone.act('deploy', 'DEPLOYED');
      const cloned: Said = { release: '2', word: 'second note', events: ['up'], stock: 1, visits: 1 };
      await answers(clone, cloned);
      await answers(place, { ...back, visits: 7 });

      await place.delete();
      await answers(clone, { ...cloned, visits: 2 });
      const last = await lastBackup(stage, place);
      await clone.restore('store', last);
      await answers(clone, { ...cloned, events: [...back.events, 'gone'], visits: 3 });
      await clone.delete();

      await program.ask('DELETE', `/project/${sources.projectId}`);
      await removeBackups(stage);
      await program.keepHouse();
      expect(await program.unfinished()).toEqual([]);
      const gone = [place, clone].flatMap((one) => [one.id, ...one.serviceIds]);
      expect(await stage.leftOf(gone)).toEqual([]);
      expect(await stage.machine()).toEqual(before.machine);
      await expect.poll(() => filesOf(program.dataDir), { timeout: 10_000 }).toEqual(before.files);
      expect(await rowsAbout(stage, gone)).toEqual([]);
    },
    TIMEOUT_MS,
  );
}

/** Changes the configuration of services that are not built from the repository. */
async function change({ program }: Stage, { id, services }: Place): Promise<void> {
  const { results } = await program.ask('GET', `/environment/${id}/environmentVariable`);
  const word = results.find(({ key }: { key: string }) => key === 'TF_VAR_word');
  await program.ask('PUT', `/environment/${id}/environmentVariable/${word.id}`, {
    key: word.key,
    value: 'second note',
  });
  await program.ask('PUT', services['store']!, { memory: 640 });
  if (services['page']) await program.ask('PUT', services['page'], { tag: '2' });
}

async function backupsOf({ program }: Stage): Promise<any[]> {
  const organization = (await program.ask('GET', '/organization')).results[0].id;
  return (await program.ask('GET', `/organization/${organization}/databaseBackup`)).results;
}

/** Returns the backup that was made before the environment's database was removed. */
async function lastBackup(stage: Stage, place: Place): Promise<string> {
  const made = (await backupsOf(stage)).filter(
    ({ origin, database }) => origin === 'BEFORE_DELETE' && database.id === place.idOf('store'),
  );
  expect(made).toMatchObject([{ error: null, status: { state: 'READY' } }]);
  return made[0].id;
}

/** Deletes the backups of deleted databases, which only a request removes. */
async function removeBackups(stage: Stage): Promise<void> {
  for (const { id } of await backupsOf(stage)) await stage.program.ask('DELETE', `/databaseBackup/${id}`);
  await expect.poll(() => backupsOf(stage), { timeout: 20_000 }).toEqual([]);
}
