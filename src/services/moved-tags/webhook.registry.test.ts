import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { listenForWork } from '#platform/work/index.ts';
import { createImages } from '#services/images/registry-images.ts';
import { KINDS } from '#services/mount.ts';
import { createTagLoop } from '#services/moved-tags/look.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { ALLOW_LOOPBACK, startRegistry, type TestRegistry } from '#test/harness/registry.ts';

// Without polls only a call makes a look.
const app = useApp({ ...ALLOW_LOOPBACK, QUARTERDECK_IMAGE_POLL_INTERVAL: '0' });
useEngine(app);

let admin: Actor;
let registry: TestRegistry;
let registryUrl: string;
let registryId: string;
let end: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  await app.server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.server.address() as AddressInfo;
  admin = await app.organization();
  const of = { name: 'ours', kind: 'GENERIC_CR', url: 'http://127.0.0.1:1', config: {} };
  registryUrl = `/organization/${admin.organizationId}/containerRegistry`;
  registryId = ok(await admin.post(registryUrl, of), 201).id;
  const { url, secret } = ok(await admin.post(`${registryUrl}/${registryId}/webhook`), 201);
  const notifies = {
    url: `http://127.0.0.1:${port}${new URL(url).pathname}`,
    authorization: `Bearer ${secret}`,
  };
  registry = await startRegistry({ notifies });
  ok(await admin.put(`${registryUrl}/${registryId}`, { ...of, url: registry.url }), 200);
  const loop = createTagLoop({ platform: app.platform, kinds: KINDS, images: createImages(app.platform) }, newId());
  const messages = listenForWork(app.databaseConfig, [loop], app.platform);
  loop.start();
  end = [() => messages.close(), () => loop.stop(), () => registry.stop()];
});
afterAll(async () => {
  for (const one of end) await one();
});

const released = async (id: string): Promise<string> =>
  (
    await app.db
      .selectFrom('service')
      .innerJoin('release', 'release.id', 'service.release_id')
      .select('release.image')
      .where('service.id', '=', id)
      .executeTakeFirstOrThrow()
  ).image!.split('@')[1]!;

/** Makes an environment with a container that follows a tag, and deploys it. */
async function following(image_name: string): Promise<string> {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201).id;
  const body = { name: newId(), auto_deploy: true, registry_id: registryId, image_name, tag: 'stable' };
  const { id } = ok(await admin.post(`/environment/${environment}/container`, body), 201);
  ok(await admin.post(`/container/${id}/deploy?wait=30`), 200);
  return id;
}

test('a push to a registry that calls deploys what follows the tag within seconds, without polls', async () => {
  const name = `acme/${newId()}`;
  await registry.pushImage(name, 'stable', { files: { version: '1' } });
  const id = await following(name);
  const second = await registry.pushImage(name, 'stable', { files: { version: '2' } });
  await expect.poll(() => released(id)).toBe(second);
  // Another tag is none of its business.
  await registry.pushImage(name, 'next', { files: { version: '3' } });
  const { called_at } = ok(await admin.get(`${registryUrl}/${registryId}/webhook`), 200);
  expect(Date.now() - Date.parse(called_at)).toBeLessThan(60_000);
  // Calls soon after a look wait for a while, and are not lost.
  const last = await registry.pushImage(name, 'stable', { files: { version: '4' } });
  await expect.poll(() => released(id), { timeout: 25_000 }).toBe(last);
  const tags = await app.db.selectFrom('image_tag').selectAll().execute();
  expect(tags).toMatchObject([{ image_name: name, tag: 'stable', call_id: null, error: null }]);
});

test('a call of which the registry knows nothing deploys nothing, and is tried again ever more seldom', async () => {
  const name = `acme/${newId()}`;
  const first = await registry.pushImage(name, 'stable');
  const id = await following(name);
  const { url, secret } = ok(await admin.post(`${registryUrl}/${registryId}/webhook`), 201);
  const call = () =>
    app.anonymous(
      'POST',
      new URL(url).pathname,
      { events: [{ action: 'push', target: { repository: name, tag: 'stable', digest: `sha256:${'0'.repeat(64)}` } }] },
      { authorization: `Bearer ${secret}` },
    );
  const row = () => app.db.selectFrom('image_tag').selectAll().where('image_name', '=', name).executeTakeFirstOrThrow();
  expect((await call()).body).toEqual({ tags: 1 });
  await expect.poll(async () => (await row()).call_id).toBeNull();
  expect(await released(id)).toBe(first);
  const { looked_at } = await row();
  for (let n = 0; n < 20; n++) expect((await call()).body).toEqual({ tags: 1 });
  const called = await row();
  expect(called.looked_at).toEqual(looked_at);
  expect(called.next_at.getTime() - looked_at!.getTime()).toBe(10_000);
  await registry.stop();
  await expect.poll(async () => (await row()).error, { timeout: 25_000 }).toMatch(/registry/);
  const failed = await row();
  expect(failed.call_id).not.toBeNull();
  expect(failed.next_at.getTime() - failed.looked_at!.getTime()).toBeGreaterThan(300_000);
});
