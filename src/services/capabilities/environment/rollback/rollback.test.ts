import { afterAll, expect, test } from 'vitest';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const repositories = makeRepositoryRoot();
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
const engine = useEngine(app);
afterAll(() => repositories.remove());

async function deploy(admin: Actor, environmentId: string): Promise<{ last_deployment_id: string }> {
  const status = ok(await admin.post(`/environment/${environmentId}/deploy?wait=40`), 200);
  expect(status.state).toBe('DEPLOYED');
  return status;
}

test('going back to an earlier execution of an environment takes every service of it but those that were deleted since', async () => {
  const admin = await app.organization();
  const repository = repositories.make();
  repository.commit({ Dockerfile: 'FROM scratch\nCMD ["/hello"]\n' });
  const git_repository = { url: repository.url, branch: 'main' };
  const { application, environment } = await makeExample(admin, { git_repository });
  const more = exampleBody({ git_repository, name: 'second' });
  const second = ok(await admin.post(`/environment/${environment.id}/application`, more), 201);
  const gone = ok(
    await admin.post(`/environment/${environment.id}/application`, exampleBody({ git_repository, name: 'third' })),
    201,
  );
  const first = await deploy(admin, environment.id);
  ok(await admin.put(`/application/${second.id}`, { ...more, cpu: 900 }), 200);
  await deploy(admin, environment.id);
  ok(await admin.delete(`/application/${gone.id}`), 204);
  await expect.poll(async () => (await admin.get(`/application/${gone.id}`)).status).toBe(404);
  const url = `/environment/${environment.id}/rollback?wait=40`;
  ok(await admin.post(url, { execution_id: first.last_deployment_id }), 200);
  expect(engine.runtime.specOf(second.id)!.resources.cpuMilli).toBe(500);
  for (const id of [application.id, second.id])
    expect(ok(await admin.get(`/application/${id}/status`), 200)).toMatchObject({ state: 'DEPLOYED' });
});
