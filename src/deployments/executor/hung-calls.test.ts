import { afterEach, expect, test } from 'vitest';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_BUILD_SLOTS: '1', QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1/32' });
const engine = useEngine(app);

/** Shorter than the settings allow: tests wait for it. */
const limitSteps = (seconds: number): void => void (app.platform.settings.stepProgressSeconds = seconds);
afterEach(() => {
  engine.runtime.faults = {};
  limitSteps(60);
});

const stateOf = async (admin: Actor, id: string): Promise<string> =>
  ok(await admin.get(`/application/${id}/status`), 200).state;

/** An application that is deployed, and whose next call of the runtime never answers. */
async function deployed() {
  const admin = await app.organization();
  const example = await makeExample(admin);
  const url = `/application/${example.application.id}`;
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  const until = (state: string) => expect.poll(() => stateOf(admin, example.application.id)).toBe(state);
  return { admin, url, until, ...example };
}

test('a stop whose engine never answers ends in its error soon after its deadline', async () => {
  const { admin, url, until } = await deployed();
  engine.runtime.faults = { deaf: ['stop'] };
  limitSteps(2);
  ok(await admin.post(`${url}/stop`), 200);
  await until('STOP_ERROR');
  const { status_details: details } = ok(await admin.get(`${url}/status`), 200);
  expect(details).toMatchObject({ action: 'STOP', status: 'ERROR' });
  const row = await app.db
    .selectFrom('deployment_service')
    .select('error')
    .where('state', '=', 'STOP_ERROR')
    .where('organization_id', '=', admin.organizationId)
    .executeTakeFirstOrThrow();
  expect(row.error).toBe('DEPLOYMENT showed no progress for 2 seconds and was ended.');
});

test('a deployment whose engine never answers is cancelled all the same, its next one skips nothing, and the call that comes back changes nothing', async () => {
  const { admin, url, until, environment, application } = await deployed();
  engine.runtime.faults = { deaf: ['restart'] };
  ok(await admin.post(`${url}/restart-service`), 200);
  await until('RESTARTING');
  ok(await admin.post(`/environment/${environment.id}/cancelDeployment`), 200);
  await until('CANCELED');
  const before = engine.runtime.specOf(application.id);
  engine.runtime.faults = {};
  const status = ok(await admin.post(`${url}/redeploy?wait=40`), 200);
  expect(status.state).toBe('DEPLOYED');
  expect(status.steps.details.map((step: { step_name: string }) => step.step_name)).toContain('BUILD');
  expect(engine.runtime.specOf(application.id)!.identity.generation).toBe(before!.identity.generation + 2);
});

test('a service whose git server never answers fails alone, and the others of its environment are deployed', async () => {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  await using git = await startGitServer({ root: '/nowhere', hangs: true });
  const git_repository = { url: `${git.url}/hello`, branch: 'main' };
  const body = exampleBody({ name: 'hung', git_repository });
  const hung = ok(await admin.post(`/environment/${environment.id}/application`, body), 201);
  limitSteps(2);
  ok(await admin.post(`/environment/${environment.id}/deploy`), 200);
  await expect.poll(() => stateOf(admin, hung.id), { timeout: 40_000 }).toBe('DEPLOYMENT_ERROR');
  await expect.poll(() => stateOf(admin, application.id), { timeout: 40_000 }).toBe('DEPLOYED');
  const { error } = ok(await admin.get(`/application/${hung.id}/status`), 200);
  const message = 'hung: its source was not read within 2 seconds.';
  expect(error).toMatchObject({ code: 'SOURCE_UNAVAILABLE', message });
}, 90_000);

test('a worker whose engine never answers stops, and gives back what it was at', async () => {
  const { admin, url, until, environment } = await deployed();
  engine.runtime.faults = { deaf: ['stop'] };
  ok(await admin.post(`${url}/stop`), 200);
  await until('STOPPING');
  await engine.restart();
  engine.runtime.faults = {};
  await until('STOPPED');
  // What is left behind is taken over when its lease ends, which counts as an attempt.
  const { attempts } = await app.db
    .selectFrom('deployment')
    .select('attempts')
    .where('environment_id', '=', environment.id)
    .where('action', '=', 'STOP')
    .executeTakeFirstOrThrow();
  expect(attempts).toBe(1);
});

test('a build that waits for its turn is the step BUILD_QUEUEING, has no deadline, and is cancelled at once', async () => {
  const admin = await app.organization();
  const [first, second] = [await makeExample(admin), await makeExample(admin)];
  engine.runtime.faults = { delayMs: { build: 6_000 } };
  ok(await admin.post(`/application/${first.application.id}/deploy`), 200);
  const at = async (id: string) =>
    (await app.db.selectFrom('deployment_step').select(['name', 'status']).where('service_id', '=', id).execute()).map(
      ({ name, status }) => `${name} ${status}`,
    );
  await expect.poll(() => at(first.application.id)).toContain('BUILD STARTED');
  // The build before them takes longer than a step may without progress: what waits for it must not end by that.
  limitSteps(2);
  ok(await admin.post(`/application/${second.application.id}/deploy`), 200);
  await expect.poll(() => at(second.application.id)).toContain('BUILD_QUEUEING STARTED');
  const asked = performance.now();
  const third = await makeExample(admin);
  ok(await admin.post(`/application/${third.application.id}/deploy`), 200);
  await expect.poll(() => at(third.application.id)).toContain('BUILD_QUEUEING STARTED');
  ok(await admin.post(`/environment/${third.environment.id}/cancelDeployment?wait=40`), 200);
  expect(await stateOf(admin, third.application.id)).toBe('CANCELED');
  expect(await at(first.application.id)).toContain('BUILD STARTED');
  engine.runtime.faults = {};
  await expect.poll(() => stateOf(admin, second.application.id)).toBe('DEPLOYED');
  expect(performance.now() - asked).toBeGreaterThan(2_500);
});
