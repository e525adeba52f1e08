import { describe, expect, test } from 'vitest';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

/** More environments than a worker has slots (8) and an organization has (4). */
const MANY = 24;

const app = useApp({ QUARTERDECK_WORKER_SLOTS: '8', QUARTERDECK_ORGANIZATION_SLOTS: '4' });
/** Rollouts that end by themselves after the tests: each test decides how long it looks. */
const cluster = { seed: 7, rolloutMs: [400, 500] as [number, number] };
const engine = useEngine(app, { cluster }, undefined, { pretendsSources: true });

const stateOf = async (admin: Actor, id: string): Promise<string> =>
  ok(await admin.get(`/application/${id}/status`), 200).state;
const resting = async (admin: Actor): Promise<number> =>
  (
    await app.db
      .selectFrom('deployment')
      .select('id')
      .where('organization_id', '=', admin.organizationId)
      .where('resting', '=', true)
      .where('ended_at', 'is', null)
      .execute()
  ).length;
const rollsOut = (admin: Actor, count = 1) => expect.poll(() => resting(admin), { interval: 20 }).toBe(count);
/** Runs work while rollouts take longer than any test. */
async function whileSlow(work: () => Promise<void>): Promise<void> {
  cluster.rolloutMs = [600_000, 600_000];
  try {
    await work();
  } finally {
    cluster.rolloutMs = [400, 500];
  }
}

describe('a deployment whose cluster rolls out by itself', () => {
  test(
    'takes no slot while it waits: more deployments wait at a time than there are slots',
    { timeout: 60_000 },
    async () => {
      const admin = await app.organization();
      const examples = await Promise.all(Array.from({ length: MANY }, () => makeExample(admin)));
      await whileSlow(async () => {
        for (const { application } of examples) ok(await admin.post(`/application/${application.id}/deploy`), 200);
        await rollsOut(admin, MANY);
      });
      await Promise.all(
        examples.map(async ({ environment }) =>
          ok(await admin.post(`/environment/${environment.id}/cancelDeployment?wait=40`), 200),
        ),
      );
      expect(await Promise.all(examples.map(({ application }) => stateOf(admin, application.id)))).toEqual(
        examples.map(() => 'CANCELED'),
      );
    },
  );

  test('is cancelled: the candidate is taken back, and the release before goes on serving', async () => {
    const admin = await app.organization();
    const { application, environment } = await makeExample(admin);
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    const before = engine.runtime.specOf(application.id)!.identity.generation;
    await whileSlow(async () => {
      ok(await admin.post(`/application/${application.id}/redeploy`), 200);
      await rollsOut(admin);
    });
    ok(await admin.post(`/environment/${environment.id}/cancelDeployment?wait=40`), 200);
    expect(await stateOf(admin, application.id)).toBe('CANCELED');
    expect(engine.runtime.specOf(application.id)!.identity.generation).toBe(before);
    expect(engine.router.upstreams(`app-z${application.id.slice(0, 8)}.localhost`)).toHaveLength(1);
    ok(await admin.post(`/application/${application.id}/redeploy?wait=40`), 200);
    expect(await stateOf(admin, application.id)).toBe('DEPLOYED');
  });

  test('goes on by itself when its worker leaves, and the next worker ends it without beginning anew', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin);
    cluster.rolloutMs = [3_000, 3_000];
    ok(await admin.post(`/application/${application.id}/deploy`), 200);
    await rollsOut(admin);
    cluster.rolloutMs = [600_000, 600_000];
    const submits = () =>
      engine.runtime.calls.filter(({ serviceId }) => serviceId === application.id).map((c) => c.verb);
    await engine.restart();
    // A rollout that began anew would take ten minutes.
    await expect.poll(() => stateOf(admin, application.id)).toBe('DEPLOYED');
    expect(submits().filter((verb) => verb === 'progress')).toHaveLength(2);
    cluster.rolloutMs = [400, 500];
  });

  test('fails with its reason if the candidate never gets ready, and the release before goes on serving', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin);
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    const variable = { key: 'FAIL_START', value: 'yes' };
    ok(await admin.post(`/application/${application.id}/environmentVariable`, variable), 201);
    const status = ok(await admin.post(`/application/${application.id}/redeploy?wait=40`), 200);
    expect(status.state).toBe('DEPLOYMENT_ERROR');
    expect(engine.router.upstreams(`app-z${application.id.slice(0, 8)}.localhost`)).toHaveLength(1);
    expect(status.error.message).toContain('cannot start: FAIL_START is yes');
  });

  test('restarts without a slot, too', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin);
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    ok(await admin.post(`/application/${application.id}/restart-service`), 200);
    await rollsOut(admin);
    await expect.poll(() => stateOf(admin, application.id)).toBe('RESTARTED');
    expect(await resting(admin)).toBe(0);
  });
});
