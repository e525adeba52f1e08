import { expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';
import { follow, listen } from '#test/harness/stream.ts';

const app = useApp();
useEngine(app);

test('a deployment is told from request to end, with its services, steps and audit events, in order', async () => {
  const admin = await app.organization();
  const base = await listen(app.server);
  const { environment, application } = await makeExample(admin);
  const client = await follow(`${base}/organization/${admin.organizationId}/eventStream`, admin.token);
  const answer = ok(await admin.post(`/application/${application.id}/deploy?wait=15`, {}), 200);
  expect(answer.state).toBe('DEPLOYED');
  const events = await client.until((all) =>
    all.some(({ event, data }) => event === 'deployment' && data.status === 'DEPLOYED'),
  );
  console.log(JSON.stringify(events, null, 1).slice(0, 4000), environment.id);
  await client.close();
});
