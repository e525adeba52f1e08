import { newId } from '#kernel/ids.ts';
import type { FakeOutcome } from '#runtimes/fake/index.ts';
import { ok, type Actor } from '#test/harness/app.ts';
import { EXAMPLE, type TestEngine } from '#test/harness/engine.ts';

/** Source that every test can build. */
export const BUILT = { docker: { git_repository: { url: EXAMPLE, branch: 'HEAD' }, dockerfile_path: 'Dockerfile' } };

/** Job in an environment of its own. */
export interface TestJob {
  admin: Actor;
  environmentId: string;
  id: string;
  url: string;
  body: any;
}

export async function makeEnvironment(admin: Actor): Promise<string> {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: `p ${newId()}` }), 201);
  return ok(await admin.post(`/project/${project.id}/environment`, { name: 'e', mode: 'PRODUCTION' }), 201).id;
}

export async function makeJob(admin: Actor, body: object = {}, environment?: string): Promise<TestJob> {
  const environmentId = environment ?? (await makeEnvironment(admin));
  const made = { name: `job ${newId()}`, source: BUILT, healthchecks: {}, schedule: { on_start: {} }, ...body };
  const job = ok(await admin.post(`/environment/${environmentId}/job`, made), 201);
  return { admin, environmentId, id: job.id, url: `/job/${job.id}`, body: job };
}

/** Sets the outcomes of the job's next executions, in the order of their start; the last one repeats. */
export function order(engine: TestEngine, job: TestJob, ...outcomes: FakeOutcome[]): void {
  let next = 0;
  engine.runtime.onTask(job.id, () => outcomes[Math.min(next++, outcomes.length - 1)]!);
}

export const deploy = async ({ admin, url }: TestJob, query = '', body?: object) =>
  ok(await admin.post(`${url}/deploy?wait=30${query}`, body), 200);

export const executionsOf = async ({ admin, url }: TestJob) => ok(await admin.get(`${url}/execution`), 200).results;

/** Returns the lines that an execution wrote. */
export const logOf = async ({ admin, url }: TestJob, id: string): Promise<string[]> =>
  ok(await admin.get(`${url}/execution/${id}/log`), 200)
    .results.map(({ message }: { message: string }) => message)
    .filter((line: string) => !line.startsWith('Running '));
