import { afterEach, expect, test } from 'vitest';
import { RuntimeError } from '#runtimes/runtime.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);
afterEach(() => void (engine.runtime.faults = {}));

/** Text that PostgreSQL keeps neither in a text nor in JSON, and how it is told. */
const UNKEPT = { said: 'binary \0 and half \ud83d of a sign', told: 'binary \uFFFD and half \uFFFD of a sign' };

test('a service whose workload and engine say what PostgreSQL cannot keep fails alone, and both are told', async () => {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  const other = ok(await admin.post(`/environment/${environment.id}/application`, exampleBody({ name: 'b' })), 201);
  const line = {
    at: new Date().toISOString(),
    stream: 'stdout',
    instance: 'i',
    generation: 1,
    text: UNKEPT.said,
  } as const;
  const error = new RuntimeError('failed', UNKEPT.said).withLines([line]);
  const calls = engine.runtime.calls.filter(({ verb }) => verb === 'submit').length;
  engine.runtime.faults = { failAt: { submit: { call: calls + 1, error } } };
  ok(await admin.post(`/environment/${environment.id}/deploy?wait=40`), 200);
  const all = await Promise.all(
    [application.id, other.id].map(async (id) => ok(await admin.get(`/application/${id}/status`), 200)),
  );
  const [failed, deployed] = all[0].state === 'DEPLOYED' ? all.toReversed() : all;
  expect(deployed.state).toBe('DEPLOYED');
  expect(failed).toMatchObject({ state: 'DEPLOYMENT_ERROR', error: { message: UNKEPT.told } });
  const kept = await app.db
    .selectFrom('failed_instance_log')
    .select('lines')
    .where('organization_id', '=', admin.organizationId)
    .executeTakeFirstOrThrow();
  expect(kept.lines).toMatchObject([{ text: UNKEPT.told }]);
});

test('a build that fails for a reason that PostgreSQL cannot keep ends in its error, and the reason is told', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  const calls = engine.runtime.calls.filter(({ verb }) => verb === 'build').length;
  engine.runtime.faults = { failAt: { build: { call: calls + 1, error: new Error(UNKEPT.said) } } };
  const status = ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  expect(status).toMatchObject({ state: 'BUILD_ERROR', error: { message: UNKEPT.told } });
});
