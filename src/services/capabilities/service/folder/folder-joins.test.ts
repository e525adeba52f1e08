import { expect, test } from 'vitest';
import { packedOf } from '#kernel/parsing/archive.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

// Without a worker: what is requested waits.
const app = useApp();

test('a folder joins the deployment that waits, whose answers name the commit that it takes', async () => {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  const upload = async (text: string, query = '') =>
    ok(
      await admin.post(`/application/${application.id}/source${query}`, await packedOf(['Dockerfile', text]), {
        'content-type': 'application/gzip',
      }),
      202,
    );
  const waiting = upload('first', '?wait=3');
  const requests = () =>
    app.db.selectFrom('deployment').selectAll().where('environment_id', '=', environment.id).execute();
  await expect.poll(requests).toHaveLength(1);
  const second = await upload('second');
  expect(second).toMatchObject({ state: 'DEPLOYMENT_QUEUED', deployment_git_commit_id: second.git_commit_id });
  const first = await waiting;
  expect(first.deployment_request_id).toBe(second.deployment_request_id);
  expect(first.git_commit_id).not.toBe(second.git_commit_id);
  expect(first.deployment_git_commit_id).toBe(second.git_commit_id);
  const [request] = await requests();
  expect(await requests()).toHaveLength(1);
  expect((request!.snapshot as any).services.map((service: any) => service.commitId)).toEqual([second.git_commit_id]);
});
