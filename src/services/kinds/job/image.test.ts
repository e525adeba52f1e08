import { expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { ASKS_LOOPBACK, makeRegistry, useImages } from '#test/harness/images.ts';
import { deploy, executionsOf, makeJob, order } from './job.fixture.ts';

const app = useApp(ASKS_LOOPBACK);
const engine = useEngine(app);
const images = await useImages();

/** A job that runs an image of a registry. */
async function makeImageJob(body: object = {}) {
  const admin = await app.organization();
  const registry_id = await makeRegistry(admin, images);
  const source = { image: { registry_id, image_name: 'acme/migrate', tag: '1.0' } };
  return { registry_id, job: await makeJob(admin, { source, ...body }) };
}

test('runs the digest that its tag stands for, and answers its registry', async () => {
  const { job, registry_id } = await makeImageJob();
  expect(job.body.source).toEqual({
    image: {
      image_name: 'acme/migrate',
      tag: '1.0',
      registry_id,
      registry: { id: registry_id, name: 'images', url: images.url, kind: 'GENERIC_CR' },
    },
  });
  const status = await deploy(job);
  expect(status).toMatchObject({ state: 'DEPLOYED' });
  expect(status.steps.details.map((step: { step_name: string }) => step.step_name)).toEqual(['EXECUTING']);
  expect(engine.runtime.tasksOf(job.id)[0]!.image).toContain(`@${images.digestOf('acme/migrate', '1.0')}`);
  const history = ok(await job.admin.get(`${job.url}/deploymentHistory`), 200).results;
  expect(history).toMatchObject([
    { status: 'DEPLOYED', image_name: 'acme/migrate', tag: '1.0', schedule: { event: 'ON_START', schedule_at: null } },
  ]);
});

test('a tag that a deploy names becomes the configured one, and a redeploy repeats the digest', async () => {
  const { job } = await makeImageJob();
  await deploy(job, '', { image_tag: '2.0' });
  const first = images.digestOf('acme/migrate', '2.0');
  expect(ok(await job.admin.get(job.url), 200).source.image.tag).toBe('2.0');
  images.move('acme/migrate', '2.0');
  ok(await job.admin.post(`${job.url}/redeploy?wait=30`), 200);
  expect(engine.runtime.tasksOf(job.id).map((task) => task.image.split('@')[1])).toEqual([first, first]);
  await deploy(job);
  expect(engine.runtime.tasksOf(job.id).at(-1)!.image).toContain(images.digestOf('acme/migrate', '2.0'));
  const refused = ok(await job.admin.post(`${job.url}/deploy`, { git_commit_id: 'a'.repeat(40) }), 400);
  expect(refused.errors[0].field).toBe('git_commit_id');
});

test('is deployed with a tag that its registry has now, where it follows the image', async () => {
  const { job } = await makeImageJob({ auto_deploy: true });
  await deploy(job);
  const { admin } = job;
  const url = `/organization/${admin.organizationId}/job/deploy`;
  ok(await admin.post(url, { image_name: 'acme/other', tag: '3.0' }), 400);
  ok(await admin.post(url, { image_name: 'acme/migrate', tag: '3.0' }), 200);
  await expect.poll(() => engine.runtime.tasksOf(job.id).length).toBe(2);
  expect(ok(await admin.get(job.url), 200).source.image.tag).toBe('3.0');
});

test('is refused on a cluster that runs no images of registries, before anything is queued', async () => {
  const { job } = await makeImageJob();
  const { admin } = job;
  await app.db
    .updateTable('cluster')
    .set({ runtime: 'host' })
    .where('organization_id', '=', admin.organizationId)
    .execute();
  expect(ok(await admin.post(`${job.url}/deploy`), 400).message).toContain('runs an image of a registry');
  expect(ok(await admin.get(`${job.url}/status`), 200).state).toBe('READY');
});

test('a delete that is best effort goes on where its event fails', async () => {
  const { job } = await makeImageJob({ schedule: { on_start: {}, on_delete: {} } });
  await deploy(job);
  order(engine, job, { exitCode: 1 });
  ok(await job.admin.delete(`${job.url}?skipReconcile=true`), 204);
  await expect.poll(async () => (await job.admin.get(job.url)).status).toBe(404);
  expect(engine.runtime.tasksOf(job.id)).toHaveLength(2);
});

test('becomes one that is built, and the other way round', async () => {
  const { job, registry_id } = await makeImageJob();
  const { admin, url } = job;
  ok(await admin.put(url, { source: { image: { image_name: 'acme/new' } } }), 200);
  const source = { image: { registry_id, image_name: 'acme/new', tag: '1.0' } };
  expect(ok(await admin.get(url), 200).source.image).toMatchObject(source.image);
  const git_repository = { url: 'https://github.com/acme/jobs.git' };
  const built = ok(await admin.put(url, { source: { docker: { git_repository }, image: null } }), 200);
  expect(Object.keys(built.source)).toEqual(['docker']);
  const back = ok(await admin.put(url, { source }), 200);
  expect(Object.keys(back.source)).toEqual(['image']);
  expect(await executionsOf(job)).toEqual([]);
});
