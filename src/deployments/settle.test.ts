import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { listenForEnds, PROGRESS, waitForEnd } from '#deployments/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const statements: string[] = [];
const app = useApp({}, {}, (text) => statements.push(text));
afterEach(() => void vi.useRealTimers());

/** Statements that look whether deployments have ended. */
const looks = () => statements.filter((text) => /^select "id" from "deployment".*"status" <> /.test(text)).length;

/** Creates a deployment that stays waiting, since no worker runs here. */
async function openDeployment() {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const scope = { organizationId: admin.organizationId };
  const { id } = await app.db
    .selectFrom('deployment')
    .select('id')
    .where('organization_id', '=', admin.organizationId)
    .executeTakeFirstOrThrow();
  return { scope, id };
}

test('many who wait for a deployment hear of its end when it is told, and are answered by one statement together', async () => {
  const { scope, id } = await openDeployment();
  // Nothing is looked at because time passes, and nobody stops waiting.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const from = looks();
  let answered = 0;
  const waiting = Array.from({ length: 100 }, () =>
    waitForEnd(app.db, scope, id, 20, new AbortController().signal).then(() => answered++),
  );
  await expect.poll(looks).toBeGreaterThan(from);
  const before = looks();
  const close = listenForEnds(app.db, app.databaseConfig, pino({ level: 'silent' }));
  try {
    // The new connection has everything looked at.
    await expect.poll(looks).toBeGreaterThan(before);
    await app.db.updateTable('deployment').set({ status: 'ENDED' }).where('id', '=', id).execute();
    expect(answered).toBe(0);
    app.platform.notify(PROGRESS, id);
    await Promise.all(waiting);
    expect(looks() - from).toBeLessThan(10);
  } finally {
    await close();
  }
});

test('waiting ends at once for a caller that has gone away', async () => {
  const { scope, id } = await openDeployment();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await waitForEnd(app.db, scope, id, 20, AbortSignal.abort());
  const leave = new AbortController();
  const waiting = waitForEnd(app.db, scope, id, 20, leave.signal);
  leave.abort();
  await waiting;
});

test('waiting ends for a deployment that is not there', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await waitForEnd(app.db, { organizationId: newId() }, newId(), 20, new AbortController().signal);
});
