import { afterEach, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { commit, usePushes } from '#services/pushes/pushes.fixture.ts';
import { startChild, type ChildOfTest } from '#test/crash/harness/process.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
const { environmentOf, applicationIn, webhookOf, push, worker, applied, requested } = usePushes(app);
const children = new Set<ChildOfTest>();
afterEach(async () => {
  await Promise.all([...children].map((child) => child.kill()));
  children.clear();
});

/** Kill points of one push that are tried at most; the worker does it in fewer. */
const MOST_POINTS = 40;

/** Starts a worker that dies at a kill point. Resolves when it is dead, or has applied every push. */
async function runUntilDeath(dieAt: number, organizationId: string): Promise<string | undefined> {
  const input = JSON.stringify({ config: app.databaseConfig, dieAt, every: false });
  const child = startChild('test/crash/pushes.fixture.ts', [], process.env, input);
  children.add(child);
  const isOpen = async () =>
    (
      await app.db
        .selectFrom('git_push')
        .select('id')
        .where('organization_id', '=', organizationId)
        .where('status', '<>', 'ENDED')
        .execute()
    ).length > 0;
  await expect.poll(async () => !child.running || !(await isOpen()), { timeout: 60_000, interval: 20 }).toBe(true);
  // A commit is sent, and then the process dies or not: both are the end of the push.
  await child.kill();
  return /dies at .*/.exec(child.output)?.[0];
}

test('a push whose worker is killed between any two statements is applied once', { timeout: 300_000 }, async () => {
  const admin = await app.organization();
  const environments = [await environmentOf(admin), await environmentOf(admin)];
  const ids = [];
  for (const environment of environments) ids.push(await applicationIn(admin, environment));
  const hook = await webhookOf(admin);
  const countEvents = async () =>
    (
      await app.db
        .selectFrom('audit_event')
        .select('id')
        .where('organization_id', '=', admin.organizationId)
        .where('origin', '=', 'GIT')
        .execute()
    ).length;
  let before = commit('0');
  let perPush: number | undefined;
  let deaths = 0;
  for (let point = 1; point <= MOST_POINTS; point++) {
    const after = commit(String(point));
    const events = await countEvents();
    await push(hook, { before, after });
    const death = await runUntilDeath(point, admin.organizationId);
    await sql`update git_push set lease_until = now() - interval '1 second' where status = 'RUNNING'`.execute(app.db);
    worker();
    await applied(admin);
    for (const [at, environment] of environments.entries())
      expect(await requested(environment), death).toEqual([{ [ids[at]!]: after }]);
    const made = (await countEvents()) - events;
    perPush ??= made;
    expect(made, death).toBe(perPush);
    await sql`delete from deployment where organization_id = ${admin.organizationId}`.execute(app.db);
    before = after;
    if (death === undefined) break;
    deaths++;
  }
  expect(perPush).toBeGreaterThan(0);
  expect(deaths).toBeGreaterThan(4);
  expect(deaths).toBeLessThan(MOST_POINTS);
});
