import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

async function makeApplication(admin: Actor, ports: object[]): Promise<string> {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
  const git_repository = { url: 'https://github.com/acme/shop.git' };
  const body = { name: 'web', ports, git_repository };
  return ok(await admin.post(`/environment/${environment.id}/application`, body), 201).id as string;
}

test('the state of the routes of a service is that of the service, and nothing where it has no public address', async () => {
  const [admin, stranger] = [await app.organization(), await app.organization()];
  const id = await makeApplication(admin, [{ internal_port: 80, publicly_accessible: true }]);
  const url = `/APPLICATION/${id}/ingressDeploymentStatus`;
  expect(ok(await admin.get(url), 200)).toEqual({ routerId: id, status: 'READY' });
  ok(await admin.post(`/application/${id}/deploy`, {}), 200);
  const { state } = ok(await admin.get(`/application/${id}/status`), 200);
  expect(ok(await admin.get(url), 200).status).toBe(state);
  const quiet = await makeApplication(admin, [{ internal_port: 80, publicly_accessible: false }]);
  expect(ok(await admin.get(`/APPLICATION/${quiet}/ingressDeploymentStatus`), 200)).toEqual({});
  for (const path of [`/CONTAINER/${id}`, `/JOB/${id}`, `/constructor/${id}`, `/APPLICATION/${newId()}`])
    expect((await admin.get(`${path}/ingressDeploymentStatus`)).status, path).toBe(404);
  expect((await stranger.get(url)).status).toBe(404);
});
