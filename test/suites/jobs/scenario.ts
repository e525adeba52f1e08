import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import type { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { ok, useApp, type Actor, type TestApp } from '#test/harness/app.ts';
import { EXAMPLE, exampleBody } from '#test/harness/engine.ts';
import { makeRepositoryRoot, type RepositoryRoot } from '#test/harness/repository.ts';

export interface JobStage {
  app: TestApp;
  router: MemoryRouter;
  repositories: RepositoryRoot;
  runtime: 'host' | 'docker';
  /** Returns the number of runs of a job that still run on the runtime. */
  runsOf(jobId: string): Promise<number> | number;
}

/** Provides the application of a file, with repositories of its own beside the example's. */
export function useJobs(): Pick<JobStage, 'app' | 'repositories'> {
  const repositories = makeRepositoryRoot();
  afterAll(() => repositories.remove());
  const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: `${repositories.folder}:${path.dirname(EXAMPLE)}` });
  return { app, repositories };
}

const TIMEOUT_MS = 180_000;

const SCRIPT = `set -eu
echo "$1 with $TOKEN"
if [ "$1" = up ]; then
  printf '{"GREETING": "made by the job", "PASSWORD": {"value": "hunter-22", "sensitive": true}}' \
    > /quarterdeck-output/output.json
fi
case $1 in
  fail) exit 7 ;;
  hang) while :; do sleep 1; done ;;
esac
`;

interface Place {
  admin: Actor;
  environmentId: string;
}

async function makeJob({ repositories }: JobStage, { admin, environmentId }: Place, body: object): Promise<string> {
  const repository = repositories.make();
  repository.commit({
    'run.sh': SCRIPT,
    Dockerfile: 'FROM node:24-alpine\nWORKDIR /app\nCOPY . .\nENTRYPOINT ["sh", "run.sh"]\n',
  });
  const source = { docker: { git_repository: { url: repository.url, branch: 'main' } } };
  const job = ok(await admin.post(`/environment/${environmentId}/job`, { name: 'setup', source, ...body }), 201);
  ok(await admin.post(`/job/${job.id}/secret`, { key: 'TOKEN', value: 'sesame-open' }), 201);
  return `/job/${job.id}`;
}

async function makePlace({ app, runtime }: JobStage): Promise<Place> {
  const admin = await app.organization();
  await app.db.updateTable('cluster').set({ runtime }).where('organization_id', '=', admin.organizationId).execute();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
  const { id } = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
  return { admin, environmentId: id };
}

const runsOf = async (admin: Actor, job: string) => ok(await admin.get(`${job}/execution`), 200).results;
const logOf = async (admin: Actor, job: string, id: string) =>
  ok(await admin.get(`${job}/execution/${id}/log`), 200).results.map(({ message }: { message: string }) => message);

const logsOf = async ({ admin, environmentId }: Place) =>
  JSON.stringify(ok(await admin.get(`/environment/${environmentId}/logs`), 200));

/** Tests jobs with real builds and processes. */
export function testJobs(stage: JobStage): void {
  const { app, router } = stage;

  test(
    'what a lifecycle job writes reaches an application of a later stage, and its end is run when it goes',
    async () => {
      const place = await makePlace(stage);
      const { admin, environmentId } = place;
      const schedule = { on_start: { arguments: ['up'] }, on_delete: { arguments: ['down'] } };
      const job = await makeJob(stage, place, { schedule });
      const application = ok(await admin.post(`/environment/${environmentId}/application`, exampleBody()), 201);
      const status = ok(await admin.post(`/environment/${environmentId}/deploy?wait=150`), 200);
      expect(status.state, await logsOf(place)).toBe('DEPLOYED');
      const host = `app-z${application.id.slice(0, 8)}.${app.platform.settings.proxyDomain}`;
      expect(await router.get(host, '/')).toMatchObject({ status: 200, body: 'made by the job\n' });
      const [run] = await runsOf(admin, job);
      expect(run).toMatchObject({ event: 'START', state: 'SUCCEEDED', exit_code: 0, attempts: 1 });
      expect(await logOf(admin, job, run.id)).toContain('up with ***');
      expect(ok(await admin.post(`${job}/uninstall?wait=60`), 200).state, await logsOf(place)).toBe('DELETED');
      const [last] = await runsOf(admin, job);
      expect(last).toMatchObject({ event: 'DELETE', state: 'SUCCEEDED', exit_code: 0 });
      expect(await logOf(admin, job, last.id)).toContain('down with ***');
      ok(await admin.delete(job), 204);
      await expect.poll(async () => (await admin.get(job)).status, { timeout: 60_000 }).toBe(404);
    },
    TIMEOUT_MS,
  );

  test(
    'a cron job is run when it is due, and its failure is kept',
    async () => {
      const place = await makePlace(stage);
      const { admin } = place;
      const schedule = { cronjob: { scheduled_at: '@yearly', arguments: ['fail'] } };
      const job = await makeJob(stage, place, { schedule });
      expect(ok(await admin.post(`${job}/deploy?wait=150`), 200).state, await logsOf(place)).toBe('DEPLOYED');
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
    },
    TIMEOUT_MS,
  );

  test(
    'a run that fails is tried again, each time with a line in its log, and fails with the last one',
    async () => {
      const place = await makePlace(stage);
      const { admin } = place;
      const job = await makeJob(stage, place, { max_nb_restart: 2, schedule: { on_start: { arguments: ['fail'] } } });
      expect(ok(await admin.post(`${job}/deploy?wait=150`), 200).state).toBe('DEPLOYMENT_ERROR');
      const [run, ...more] = await runsOf(admin, job);
      expect(more).toEqual([]);
      expect(run).toMatchObject({ state: 'FAILED', attempts: 3, exit_code: 7, reason: 'exited' });
      const said = (await logOf(admin, job, run.id)).filter((line: string) => line === 'fail with ***');
      expect(said).toHaveLength(3);
    },
    TIMEOUT_MS,
  );

  test(
    'a run that takes longer than it may is ended, and has failed',
    async () => {
      const place = await makePlace(stage);
      const { admin } = place;
      const schedule = { on_start: { arguments: ['hang'] } };
      const job = await makeJob(stage, place, { max_duration_seconds: 2, schedule });
      ok(await admin.put(`${job}/advancedSettings`, { 'deployment.termination_grace_period_seconds': 1 }), 200);
      expect(ok(await admin.post(`${job}/deploy?wait=150`), 200).state).toBe('DEPLOYMENT_ERROR');
      expect(await runsOf(admin, job)).toMatchObject([{ state: 'FAILED', reason: 'timeout', exit_code: null }]);
    },
    TIMEOUT_MS,
  );

  test(
    'a run that is cancelled by force is ended in the runtime too, and the next one is not held up',
    async () => {
      const place = await makePlace(stage);
      const { admin, environmentId } = place;
      const job = await makeJob(stage, place, { schedule: { on_start: { arguments: ['hang'] } } });
      ok(await admin.put(`${job}/advancedSettings`, { 'deployment.termination_grace_period_seconds': 1 }), 200);
      ok(await admin.post(`${job}/deploy`), 200);
      const said = async () => {
        const [run] = await runsOf(admin, job);
        return run && run.state === 'RUNNING' ? logsOf(place) : '';
      };
      await expect.poll(said, { timeout: 60_000 }).toContain('hang with ***');
      ok(await admin.post(`/environment/${environmentId}/cancelDeployment`, { force_cancel: true }), 200);
      expect(await runsOf(admin, job)).toMatchObject([{ state: 'CANCELED' }]);
      ok(await admin.put(job, { name: 'setup', schedule: { on_start: { arguments: ['down'] } } }), 200);
      expect(ok(await admin.post(`${job}/deploy?wait=60`), 200).state, await logsOf(place)).toBe('DEPLOYED');
      await expect.poll(() => stage.runsOf(job.slice('/job/'.length)), { timeout: 20_000 }).toBe(0);
    },
    TIMEOUT_MS,
  );
}
