import { expect, test } from 'vitest';
import { makeApplication } from '#services/capabilities/service/actions/actions.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();

test('an action on an environment takes every service, and an empty one is accepted too', async () => {
  const admin = await app.organization();
  const { environment, application } = await makeApplication(admin);
  const status = ok(await admin.post(`/environment/${environment.id}/deploy`), 200);
  expect(status).toMatchObject({ id: environment.id, state: 'DEPLOYMENT_QUEUED' });
  expect(ok(await admin.get(`/application/${application.id}/status`), 200).deployment_request_id).toBe(
    status.deployment_request_id,
  );
  const empty = ok(await admin.post(`/project/${environment.project.id}/environment`, { name: 'empty' }), 201);
  ok(await admin.post(`/environment/${empty.id}/deploy`), 200);
});

test('a delete of a project deletes its environments and what was never applied in them', async () => {
  const admin = await app.organization();
  const { project, environment } = await makeApplication(admin);
  ok(await admin.delete(`/project/${project.id}`), 204);
  ok(await admin.get(`/project/${project.id}`), 404);
  ok(await admin.get(`/environment/${environment.id}`), 404);
});

test('the state of a request is told by its id, to those who may see its environment', async () => {
  const [admin, other] = [await app.organization(), await app.organization()];
  const { application, environment } = await makeApplication(admin);
  const { deployment_request_id: id } = ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
  const url = `/environment/deploymentStatus?deploymentRequestId=${id}`;
  const expected = { deployment_request_id: id, environment_id: environment.id, status: 'DEPLOYMENT_QUEUED' };
  expect(ok(await admin.get(url), 200)).toEqual(expected);
  expect(ok(await (await admin.withScope('READ')).get(`/api/v1${url}`), 200)).toEqual(expected);
  ok(await other.get(url), 404);
  ok(await admin.get('/environment/deploymentStatus'), 400);
  ok(await admin.get('/environment/deploymentStatus?deploymentRequestId=7'), 400);
});
