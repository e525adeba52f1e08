import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { runLines } from '#services/capabilities/service/logs/followed-runs.ts';
import { RunPosition } from '#services/capabilities/service/logs/run-position.ts';
import { makeJob, type TestJob } from '#services/kinds/job/job.fixture.ts';
import { useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
let admin: Actor;
beforeAll(async () => void (admin = await app.organization()));

const leaving: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const leave of leaving.splice(0)) await leave();
});

/** Makes a run of a job that was created some seconds ago and goes on. */
async function makeRun(job: TestJob, age: number, state = 'RUNNING'): Promise<string> {
  const id = newId();
  await app.db
    .insertInto('job_execution')
    .values({
      id,
      organization_id: admin.organizationId,
      environment_id: job.environmentId,
      service_id: job.id,
      event: 'CRON',
      state,
      scheduled_at: sql<Date>`now() - ${age} * interval '1 second'`,
      created_at: sql<Date>`now() - ${age} * interval '1 second'`,
    })
    .execute();
  return id;
}

/** Stores lines as the next chunk of a run. */
async function write(run: string, ...texts: string[]): Promise<void> {
  const content = gzipSync(texts.map((text) => JSON.stringify({ at: '2026-01-01T00:00:00.000Z', text })).join('\n'));
  await sql`insert into job_execution_log (execution_id, organization_id, sequence, content, lines)
    select ${run}, ${admin.organizationId}, coalesce(max(sequence), 0) + 1, ${content}, ${texts.length}
    from job_execution_log where execution_id = ${run}`.execute(app.db);
}

const change = (run: string, changes: object) =>
  app.db.updateTable('job_execution').set(changes).where('id', '=', run).execute();

/** Ends a run some seconds ago. */
const end = (run: string, age: number) =>
  change(run, { state: 'SUCCEEDED', ended_at: sql<Date>`now() - ${age} * interval '1 second'` });

const clean = (run: string) => change(run, { discarded: true });

/** Follows the log of a job; returns its texts so far (null for a gap) with the position behind each. */
function follow(
  job: TestJob,
  { lastId, tail = 100, db = app.db }: { lastId?: string; tail?: number; db?: Database } = {},
) {
  const leave = new AbortController();
  const position = lastId === undefined ? new RunPosition() : RunPosition.read(lastId)!;
  const texts: (string | null)[] = [];
  const ids: string[] = [];
  const target = { organizationId: admin.organizationId, id: job.id } as never;
  const ended = (async () => {
    for await (const line of runLines({ db, target }, position, { tail, signal: leave.signal })) {
      texts.push(line === null ? null : line.text);
      ids.push(position.toString());
    }
  })();
  const stop = async () => {
    leave.abort();
    await ended;
  };
  leaving.push(stop);
  const idBehind = (text: string) => ids[texts.indexOf(text)]!;
  return { texts, idBehind, stop, until: (wanted: (string | null)[]) => expect.poll(() => texts).toEqual(wanted) };
}

describe('runs beside each other', () => {
  test('are all followed until they end, whichever began first', async () => {
    const job = await makeJob(admin);
    const first = await makeRun(job, 60);
    await write(first, 'before');
    const second = await makeRun(job, 30);
    await write(second, 'newest');
    const client = follow(job);
    await client.until(['newest']);
    await write(first, 'of the first');
    await client.until(['newest', 'of the first']);
    const third = await makeRun(job, 0);
    await write(third, 'of the third');
    await client.until(['newest', 'of the first', 'of the third']);
    await write(first, 'still of the first');
    await write(second, 'of the second');
    await expect.poll(() => client.texts.slice(3).toSorted()).toEqual(['of the second', 'still of the first']);
  });

  test('are gone on from, each where the client was, and in the middle of a chunk', async () => {
    const job = await makeJob(admin);
    const first = await makeRun(job, 60);
    const second = await makeRun(job, 30);
    await write(second, 'newest');
    const client = follow(job);
    await client.until(['newest']);
    await write(first, 'one', 'two', 'three');
    await client.until(['newest', 'one', 'two', 'three']);
    await client.stop();
    await write(second, 'later');
    const again = follow(job, { lastId: client.idBehind('two') });
    await again.until(['three', 'later']);
  });

  test('that are replaced have their last lines, also those that are stored when the next run has begun', async () => {
    const job = await makeJob(admin);
    const replaced = await makeRun(job, 60);
    await write(replaced, 'one');
    const client = follow(job);
    await client.until(['one']);
    const next = await makeRun(job, 0);
    await write(next, 'next');
    await client.until(['one', 'next']);
    await end(replaced, 0);
    await write(replaced, 'the last words');
    await client.until(['one', 'next', 'the last words']);
  });

  test('that waited while later ones ran are read from their beginning', async () => {
    const job = await makeJob(admin);
    const waiting = await makeRun(job, 60, 'WAITING');
    const running = await makeRun(job, 30);
    await write(running, 'newest');
    const client = follow(job);
    await client.until(['newest']);
    await change(waiting, { state: 'RUNNING' });
    await write(waiting, 'at last');
    await client.until(['newest', 'at last']);
  });
});

describe('runs that were cleaned away', () => {
  test('make no earlier run come again', async () => {
    const job = await makeJob(admin);
    const first = await makeRun(job, 600);
    await write(first, 'first');
    await end(first, 300);
    const failed = await makeRun(job, 60);
    await write(failed, 'failed');
    const client = follow(job);
    await client.until(['failed']);
    await end(failed, 30);
    await clean(failed);
    await client.stop();
    const again = follow(job, { lastId: client.idBehind('failed') });
    const last = follow(job);
    await again.until([null]);
    await last.until(['first']);
    const later = await makeRun(job, 0);
    await write(later, 'later');
    await again.until([null, 'later']);
  });

  test('while they are followed leave nothing missing', async () => {
    const job = await makeJob(admin);
    const failed = await makeRun(job, 60);
    await write(failed, 'failed');
    const client = follow(job);
    await client.until(['failed']);
    await end(failed, 30);
    await clean(failed);
    const later = await makeRun(job, 0);
    await write(later, 'later');
    await client.until(['failed', 'later']);
  });
});

test('a long run is read in parts, to its end', async () => {
  const job = await makeJob(admin);
  const run = await makeRun(job, 60);
  await write(run, 'begin');
  const client = follow(job);
  await client.until(['begin']);
  for (let n = 0; n < 40; n++) await write(run, `${n}`);
  await client.until(['begin', ...Array.from({ length: 40 }, (_, n) => String(n))]);
});

test('more runs than are looked at begin with a gap', async () => {
  const job = await makeJob(admin);
  const first = await makeRun(job, 600);
  await write(first, 'first');
  const client = follow(job);
  await client.until(['first']);
  await client.stop();
  await end(first, 300);
  for (let n = 0; n < 70; n++) {
    const run = await makeRun(job, 100 - n);
    await write(run, String(n));
    await end(run, 90 - n);
  }
  const again = follow(job, { lastId: client.idBehind('first') });
  await expect.poll(() => again.texts.at(-1)).toBe('69');
  expect(again.texts[0]).toBe(null);
  expect(again.texts.slice(1)).toEqual(
    Array.from({ length: again.texts.length - 1 }, (_, n) => String(70 - again.texts.length + 1 + n)),
  );
});

test('a look takes one query where nothing runs, and one more for each run that goes on', async () => {
  const job = await makeJob(admin);
  const run = await makeRun(job, 60);
  await write(run, 'one');
  const kinds = new WeakMap<object, string>();
  let queries: string[] = [];
  const db = app.db.withPlugin({
    transformQuery({ node, queryId }) {
      kinds.set(queryId, node.kind);
      return node;
    },
    async transformResult({ result, queryId }) {
      queries.push(kinds.get(queryId)!);
      return result;
    },
  });
  const client = follow(job, { db });
  await client.until(['one']);
  /** Waits for a number of looks and returns the queries of each: the list of runs comes first, chunks are read by plain SQL. */
  const looks = async (count: number): Promise<number[]> => {
    queries = [];
    const starts = () => queries.flatMap((kind, at) => (kind === 'SelectQueryNode' ? [at] : []));
    await expect.poll(() => starts().length).toBeGreaterThan(count);
    return starts()
      .slice(1)
      .map((at, n) => at - starts()[n]!);
  };
  expect(new Set(await looks(2))).toEqual(new Set([2]));
  await end(run, 60);
  await looks(1);
  expect(new Set(await looks(2))).toEqual(new Set([1]));
});
