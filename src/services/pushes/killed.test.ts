import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { openDatabase, sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import { commit, usePushes } from '#services/pushes/pushes.fixture.ts';
import { createPushLoop } from '#services/pushes/work.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
const { repositories, environmentOf, applicationIn, webhookOf, push, worker, applied, requested } = usePushes(app);

/** Statements between two kill points, and the most that one push takes. */
const STRIDE = 3;
const MOST_STATEMENTS = 120;

/** Applies what waits with a worker whose connections break before its n-th statement. Returns that statement; undefined if it sends fewer. */
async function runUntilStatement(n: number, isDone: () => Promise<boolean>): Promise<string | undefined> {
  let count = 0;
  let death: string | undefined;
  const open = openDatabase({
    config: { ...app.databaseConfig, max: 4, application_name: 'dying' },
    onStatement: (text) => {
      if (death === undefined && ++count === n) death = text;
      if (death !== undefined) throw new Error('The worker was killed.');
    },
  });
  const platform = { ...app.platform, db: open.db };
  const loop = createPushLoop({ platform, kinds: KINDS, repositories }, newId());
  void loop.look();
  await expect.poll(async () => death !== undefined || (await isDone()), { timeout: 20_000, interval: 5 }).toBe(true);
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'dying'`.execute(app.db);
  await loop.stop();
  await open.close();
  return death;
}

test('a push whose worker is killed between any two statements is applied once', { timeout: 240_000 }, async () => {
  const admin = await app.organization();
  const { organizationId } = admin;
  const environments = [await environmentOf(admin), await environmentOf(admin)];
  const ids: string[] = [];
  for (const environment of environments) ids.push(await applicationIn(admin, environment));
  const hook = await webhookOf(admin);
  const countEvents = async () =>
    (
      await app.db
        .selectFrom('audit_event')
        .select('id')
        .where('organization_id', '=', organizationId)
        .where('origin', '=', 'GIT')
        .execute()
    ).length;
  const isDone = async () => {
    const open = app.db.selectFrom('git_push').select('id').where('organization_id', '=', organizationId);
    return (await open.where('status', '<>', 'ENDED').execute()).length === 0;
  };
  let before = commit('0');
  let perPush: number | undefined;
  let deaths = 0;
  for (let n = 1; n < MOST_STATEMENTS; n += STRIDE) {
    const after = commit(String(n));
    const events = await countEvents();
    await push(hook, { before, after });
    const death = await runUntilStatement(n, isDone);
    await sql`update git_push set lease_until = now() - interval '1 second' where status = 'RUNNING'`.execute(app.db);
    const heir = worker();
    await applied(admin);
    await heir.stop();
    for (const [at, environment] of environments.entries())
      expect(await requested(environment), death).toEqual([{ [ids[at]!]: after }]);
    const made = (await countEvents()) - events;
    perPush ??= made;
    expect(made, death).toBe(perPush);
    await sql`delete from deployment where organization_id = ${organizationId}`.execute(app.db);
    before = after;
    if (death === undefined) break;
    deaths++;
  }
  expect(perPush).toBeGreaterThan(0);
  expect(deaths).toBeGreaterThan(4);
});
