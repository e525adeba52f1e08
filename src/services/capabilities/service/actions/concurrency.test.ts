import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { ok, useApp, type Answer } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { sessionsThatWait } from '#test/harness/waiting.ts';

const app = useApp();

test('actions on an environment and on its services at once never answer 500, whatever locks they meet in', async () => {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  const urls = [
    `/environment/${environment.id}/deploy`,
    `/application/${application.id}/stop`,
    `/environment/${environment.id}/stop`,
    `/application/${application.id}/deploy`,
  ];
  const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => admin.post(urls[index % urls.length]!)));
  const removed = await Promise.all([
    admin.delete(`/application/${application.id}`),
    admin.post(`/application/${application.id}/deploy`),
    admin.delete(`/environment/${environment.id}`),
    admin.post(`/environment/${environment.id}/deploy`),
  ]);
  for (const answer of [...answers, ...removed]) expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(500);
});

test.each([
  ['delete', 204],
  ['uninstall', 200],
])('a %s waits for the worker at its service, and holds nothing that the worker needs', async (action, status) => {
  const admin = await app.organization();
  const { id } = (await makeExample(admin)).application;
  const path = `/application/${id}`;
  const { deployment_request_id: deployment } = ok(await admin.post(`${path}/deploy`), 200);
  await app.db.updateTable('deployment').set({ status: 'RUNNING' }).where('id', '=', deployment).execute();
  let answer: Promise<Answer> | undefined;
  await app.db.transaction().execute(async (worker) => {
    await worker.selectFrom('deployment').select('id').where('id', '=', deployment).forUpdate().execute();
    answer = action === 'delete' ? admin.delete(path) : admin.post(`${path}/${action}`);
    await expect.poll(() => sessionsThatWait(app.db)).toBeGreaterThan(0);
    await sql`set local lock_timeout = '500ms'`.execute(worker);
    await worker.updateTable('service').set({ dirty: true }).where('id', '=', id).execute();
  });
  expect((await answer)!.status).toBe(status);
});
