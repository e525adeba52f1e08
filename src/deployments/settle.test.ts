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
  const service = `/application/${application.id}`;
  const { id } = await app.db
    .selectFrom('deployment')
    .select('id')
    .where('organization_id', '=', admin.organizationId)
    .executeTakeFirstOrThrow();
  return { admin, scope, service, environment: `/environment/${application.environment.id}`, id };
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

test('the statuses of a service and of its environment wait for the end of the deployment under way, whoever asked for it', async () => {
  const { admin, service, environment, id } = await openDeployment();
  let answered = 0;
  const ask = async (at: string) => {
    const body = ok(await admin.get(`${at}/status?wait=60`), 200);
    answered++;
    return body;
  };
  const from = looks();
  const waiting = [ask(service), ask(environment)];
  await expect.poll(looks).toBeGreaterThan(from + 1);
  expect(answered).toBe(0);
  await app.db.updateTable('deployment').set({ status: 'ENDED', outcome: 'SUCCESS' }).where('id', '=', id).execute();
  for (const body of await Promise.all(waiting)) expect(body).toMatchObject({ deployment_request_id: id });
  // Nothing is under way: the answer comes at once.
  ok(await admin.get(`${service}/status?wait=600`), 200);
});

test('a wait that is no number of seconds, or too long, is refused', async () => {
  const { admin, service } = await openDeployment();
  for (const wait of ['601', '-1', 'long', '1.5'])
    expect(ok(await admin.get(`${service}/status?wait=${wait}`), 400).message).toContain('from 0 to 600');
});
