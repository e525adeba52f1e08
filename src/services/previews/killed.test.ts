import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import type { Platform } from '#platform/context.ts';
import { openDatabase, sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import { createCallLoop } from '#services/previews/calls.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { useProvider } from '#services/previews/provider.fixture.ts';
import { createReportLoop } from '#services/previews/report.ts';
import { createPreviewLoop } from '#services/previews/reconcile.ts';
import { commit } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const fixture = usePreviews(app);
const { repositories, sourceOf, webhookOf, tell, worker, callsOf, previewsOf, settled, environmentsOf, servicesOf, requested } = fixture; // prettier-ignore
const { provider, place, told, reportsOf } = useProvider(app, fixture);

/** Most statements that one pull request takes. */
const MOST_STATEMENTS = 300;

type Loops = Pick<ReturnType<typeof createCallLoop>, 'look' | 'stop'>[];

/** Does what waits with loops whose connections break before their n-th statement. Returns that statement; undefined if they send fewer. */
async function runUntilStatement(
  n: number,
  loopsOf: (platform: Platform) => Loops,
  isDone: () => Promise<boolean>,
): Promise<string | undefined> {
  let count = 0;
  let death: string | undefined;
  const open = openDatabase({
    config: { ...app.databaseConfig, max: 4, application_name: 'dying' },
    onStatement: (text) => {
      if (death === undefined && ++count === n) death = text;
      if (death !== undefined) throw new Error('The worker was killed.');
    },
  });
  const loops = loopsOf({ ...app.platform, db: open.db });
  await expect
    .poll(
      async () => {
        for (const loop of loops) void loop.look();
        return death !== undefined || (await isDone());
      },
      { timeout: 20_000, interval: 5 },
    )
    .toBe(true);
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'dying'`.execute(app.db);
  await Promise.all(loops.map((loop) => loop.stop()));
  await open.close();
  return death;
}

const leave = (table: string) =>
  sql`update ${sql.table(table)} set lease_until = now() - interval '1 second' where status = 'RUNNING'`.execute(
    app.db,
  );

test(
  'a pull request whose workers are killed between any two statements has one preview, and after its end none',
  { timeout: 900_000 },
  async () => {
    const admin = await app.organization();
    const { organizationId } = admin;
    const { environment } = await sourceOf(admin);
    const hook = await webhookOf(admin);
    const deaths = { opened: 0, closed: 0 };
    const run = (n: number) =>
      runUntilStatement(
        n,
        (platform) => {
          const parts = { platform, kinds: KINDS, repositories };
          return [createCallLoop(parts, newId()), createPreviewLoop(parts, newId())];
        },
        async () => [...(await callsOf(admin)), ...(await previewsOf(admin))].every(({ status }) => status === 'ENDED'),
      );
    const goOn = async (death: string | undefined) => {
      for (const table of ['pull_request_call', 'preview']) await leave(table);
      const heir = worker();
      await settled(admin);
      await heir.stop();
      return death;
    };
    for (let n = 1; n < MOST_STATEMENTS; n++) {
      const head = commit(String(n));
      ok(await tell(hook, { number: n, head, at: 2 * n }), 202);
      const opened = await goOn(await run(n));
      const found = (await environmentsOf(admin)).filter(({ id }) => id !== environment);
      expect(found.map(({ name }) => name), opened).toEqual([`dev PR ${n}`]); // prettier-ignore
      const id = found[0]!.id;
      expect(await requested(id), opened).toEqual([{ [(await servicesOf(id)).web!.id]: head }]);
      const events = await app.db
        .selectFrom('audit_event')
        .select('id')
        .where('organization_id', '=', organizationId)
        .where('environment_id', '=', id)
        .where('event_type', '=', 'CLONE')
        .execute();
      expect(events, opened).toHaveLength(1);

      // Nothing of the deployment was begun: the environment is gone with its row.
      await sql`delete from deployment where environment_id = ${id}`.execute(app.db);
      ok(await tell(hook, { number: n, action: 'closed', head, at: 2 * n + 1 }), 202);
      const closed = await goOn(await run(n));
      expect((await environmentsOf(admin)).map(({ name }) => name), closed).toEqual(['dev']); // prettier-ignore
      if (opened !== undefined) deaths.opened++;
      if (closed !== undefined) deaths.closed++;
      if (opened === undefined) break;
    }
    expect(deaths.opened).toBeGreaterThan(30);
    expect(deaths.closed).toBeGreaterThan(10);
  },
);

test(
  'a report whose worker is killed between any two statements leaves one comment with the last state',
  { timeout: 300_000 },
  async () => {
    const { admin, key } = await place();
    const hook = await webhookOf(admin, key);
    const heir = worker();
    let deaths = 0;
    for (let n = 1; n < MOST_STATEMENTS; n++) {
      provider.statuses = [];
      const head = commit(String(n));
      // Each pull request is one of a fork: its report ends as soon as it is told.
      ok(await tell(hook, { number: n, head, headRepository: 2 }), 202);
      await settled(admin);
      const before = provider.comments.size;
      const death = await runUntilStatement(
        n,
        (platform) => [createReportLoop({ platform, kinds: KINDS }, newId())],
        async () => (await reportsOf(admin)).every(({ status }) => status === 'ENDED'),
      );
      await leave('pull_request_report');
      await told(admin);
      expect(provider.comments.size - before, death).toBe(1);
      expect([...provider.comments.values()].at(-1), death).toContain(head);
      expect(provider.statuses.map(({ commit: of, state }) => `${of} ${state}`), death).toContain(`${head} pending`); // prettier-ignore
      expect(await reportsOf(admin), death).toSatisfy(
        (reports: { error: string | null; told_comment: string | null }[]) =>
          reports.every(({ error, told_comment }) => error === null && told_comment !== null),
      );
      if (death === undefined) break;
      deaths++;
    }
    await heir.stop();
    expect(deaths).toBeGreaterThan(5);
  },
);
