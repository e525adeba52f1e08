import { expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';
import { exampleBody, makeExample } from '#test/harness/engine.ts';

const app = useApp();

test.each([
  ['cpu', '500m', 'must be a whole number of milli-CPU, such as 500'],
  ['cpu', 0.5, 'must be a whole number of milli-CPU, such as 500'],
  ['memory', '512Mi', 'must be a whole number of MiB, such as 512'],
])('%s as %j is refused with the unit that is meant and an example', async (field, wrong, message) => {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  const body = exampleBody({ name: 'other', [field]: wrong });
  const made = ok(await admin.post(`/environment/${environment.id}/application`, body), 400);
  const edited = ok(await admin.put(`/application/${application.id}`, body), 400);
  expect([made.errors, edited.errors]).toEqual(Array(2).fill([{ field, message }]));
});
