import { afterAll, describe, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createHostRuntime } from '#runtimes/host/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { useEngineOn } from '#test/suites/security/host-engine.ts';

const repositories = makeRepositoryRoot();
afterAll(() => repositories.remove());
const example = exampleBody().git_repository.url;
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: `${repositories.folder}:${example.replace(/\/[^/]+\/?$/, '')}` });
const router = new MemoryRouter();
useEngineOn(app, () =>
  createHostRuntime({
    dataDir: app.platform.settings.dataDir,
    installation: app.installationId,
    router,
    log: () => undefined,
    network: 'machine',
  }),
);

const SCRIPT = `set -eu
echo "$1 with $TOKEN"
if [ "$1" = up ]; then
  printf '{"GREETING": "made by the job", "PASSWORD": {"value": "hunter-22", "sensitive": true}}' \
    > /quarterdeck-output/output.json
fi
if [ "$1" = fail ]; then exit 7; fi
`;

async function makeJob(admin: Actor, environmentId: string, schedule: object) {
  const repository = repositories.make();
  repository.commit({
    'run.sh': SCRIPT,
    Dockerfile: 'FROM alpine:3.22\nWORKDIR /app\nCOPY . .\nENTRYPOINT ["sh", "run.sh"]\n',
  });
  const source = { docker: { git_repository: { url: repository.url, branch: 'main' } } };
  const job = ok(await admin.post(`/environment/${environmentId}/job`, { name: 'setup', source, schedule }), 201);
  ok(await admin.post(`/job/${job.id}/secret`, { key: 'TOKEN', value: 'sesame-open' }), 201);
  return `/job/${job.id}`;
}

async function makeEnvironment() {
  const admin = await app.organization();
  await app.db
    .updateTable('cluster')
    .set({ runtime: 'host' })
    .where('organization_id', '=', admin.organizationId)
    .execute();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
  const { id } = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
  return { admin, environmentId: id as string };
}

const runsOf = async (admin: Actor, job: string) => ok(await admin.get(`${job}/execution`), 200).results;
const logOf = async (admin: Actor, job: string, id: string) =>
  ok(await admin.get(`${job}/execution/${id}/log`), 200).results.map(({ message }: { message: string }) => message);

describe('jobs on a host cluster, with real builds and processes', () => {
  test('what a lifecycle job writes reaches an application of a later stage', { timeout: 180_000 }, async () => {
    const { admin, environmentId } = await makeEnvironment();
    const job = await makeJob(admin, environmentId, {
      on_start: { arguments: ['up'] },
      on_delete: { arguments: ['down'] },
    });
    const application = ok(await admin.post(`/environment/${environmentId}/application`, exampleBody()), 201);
    const status = ok(await admin.post(`/environment/${environmentId}/deploy?wait=150`), 200);
    expect(status.state, JSON.stringify(ok(await admin.get(`/environment/${environmentId}/logs`), 200))).toBe(
      'DEPLOYED',
    );
    const host = `app-z${application.id.slice(0, 8)}.${app.platform.settings.proxyDomain}`;
    expect(await router.get(host, '/')).toMatchObject({ status: 200, body: 'made by the job\n' });
    const [run] = await runsOf(admin, job);
    expect(run).toMatchObject({ event: 'START', state: 'SUCCEEDED', exit_code: 0, attempts: 1 });
    expect(await logOf(admin, job, run.id)).toContain('up with ***');
    ok(await admin.delete(job), 204);
    await expect.poll(async () => (await admin.get(job)).status, { timeout: 60_000 }).toBe(404);
  });

  test('a cron job is run when it is due, and its failure is kept', { timeout: 180_000 }, async () => {
    const { admin, environmentId } = await makeEnvironment();
    const job = await makeJob(admin, environmentId, { cronjob: { scheduled_at: '@yearly', arguments: ['fail'] } });
    expect(ok(await admin.post(`${job}/deploy?wait=150`), 200).state).toBe('DEPLOYED');
    const id = job.slice('/job/'.length);
    const due = () =>
      app.db
        .updateTable('cron_schedule')
        .set({ next_at: sql`now()` })
        .where('service_id', '=', id)
        .executeTakeFirstOrThrow();
    await expect.poll(async () => (await due()).numUpdatedRows, { timeout: 10_000 }).toBe(1n);
    await expect.poll(async () => (await runsOf(admin, job))[0]?.state, { timeout: 60_000 }).toBe('FAILED');
    const [run] = await runsOf(admin, job);
    expect(run).toMatchObject({
      event: 'CRON',
      exit_code: 7,
      reason: 'exited',
      error: expect.stringContaining('status 7'),
    });
    expect(await logOf(admin, job, run.id)).toContain('fail with ***');
  });
});
