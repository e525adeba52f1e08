import { expect, test } from 'vitest';
import { useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

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
