import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { createImages } from '#services/images/registry-images.ts';
import { KINDS } from '#services/mount.ts';
import { createTagLoop, reconcileFollowedTags } from '#services/moved-tags/look.ts';
import { TAG_REPORT } from '#services/moved-tags/queries.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { ALLOW_LOOPBACK, startRegistry, type TestRegistry } from '#test/harness/registry.ts';

const app = useApp(ALLOW_LOOPBACK);
useEngine(app);
let registry: TestRegistry;
beforeAll(async () => {
  registry = await startRegistry({ auth: 'token' });
});
afterAll(() => registry.stop());

const loops: ReturnType<typeof createTagLoop>[] = [];
const asked: string[] = [];
beforeEach(async () => {
  asked.length = 0;
  await sql`update service set spec = spec || '{"auto_deploy": false}'`.execute(app.db);
  await follow();
});
afterEach(async () => {
  await Promise.all(loops.splice(0).map((loop) => loop.stop()));
});

const follow = () => reconcileFollowedTags(app.platform, KINDS);
const tags = () => app.db.selectFrom('image_tag').selectAll().orderBy('tag').execute();
const makeDue = () => sql`update image_tag set next_at = now()`.execute(app.db);

/** Begins to look at what is due, in a process of its own. */
function process() {
  const real = createImages(app.platform);
  const resolveImage: typeof real.resolveImage = (request) => {
    asked.push(request.tag);
    return real.resolveImage(request);
  };
  const loop = createTagLoop({ platform: app.platform, kinds: KINDS, images: { resolveImage } }, newId());
  loops.push(loop);
  loop.start();
  return loop;
}

/** Looks at every tag once, and waits for what that requested. */
async function look(processes = 1) {
  await follow();
  const since = new Date();
  await makeDue();
  for (let n = loops.length; n < processes; n++) process();
  await expect
    .poll(
      async () => {
        for (const loop of loops) loop.nudge();
        return (await tags()).every((row) => row.looked_at && row.looked_at >= since && !row.claim_token);
      },
      { interval: 10 },
    )
    .toBe(true);
  await expect
    .poll(() => app.db.selectFrom('deployment').select('id').where('status', '<>', 'ENDED').execute(), { interval: 10 })
    .toEqual([]);
}

interface Place {
  admin: Actor;
  registryId: string;
  environment: string;
  image: { registry_id: string; image_name: string; tag: string };
}

async function place(image_name = `acme/${newId()}`, url = registry.url): Promise<Place> {
  const admin = await app.organization();
  const body = { name: 'ours', kind: 'GENERIC_CR', url, config: registry.credentials! };
  const registryId = ok(await admin.post(`/organization/${admin.organizationId}/containerRegistry`, body), 201).id;
  const image = { registry_id: registryId, image_name, tag: 'stable' };
  return { admin, registryId, environment: await environmentOf(admin), image };
}

async function environmentOf(admin: Actor): Promise<string> {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  return ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201).id;
}

/** Makes a container that follows the image's tag, and deploys it. */
async function container({ admin, environment, image }: Place, body: object = {}): Promise<string> {
  const wanted = { name: newId(), auto_deploy: true, ...image, ...body };
  const { id } = ok(await admin.post(`/environment/${environment}/container`, wanted), 201);
  return deployed(admin, id);
}
async function deployed(admin: Actor, id: string): Promise<string> {
  expect(ok(await admin.post(`/container/${id}/deploy?wait=30`), 200)).toMatchObject({ state: 'DEPLOYED' });
  return id;
}

const released = async (id: string): Promise<string> =>
  (
    await app.db
      .selectFrom('service')
      .innerJoin('release', 'release.id', 'service.release_id')
      .select('release.image')
      .where('service.id', '=', id)
      .executeTakeFirstOrThrow()
  ).image!.split('@')[1]!;
const deployments = (environment: string) =>
  app.db.selectFrom('deployment').selectAll().where('environment_id', '=', environment).orderBy('number').execute();
const push = ({ image }: Place, content: string) =>
  registry.pushImage(image.image_name, image.tag, { files: { version: content } });

test('a tag that moves deploys what follows it, by one request in each environment, and is asked for once', async () => {
  const here = await place();
  const first = await push(here, '1');
  const ids = [await container(here), await container(here)];
  const there = { ...here, environment: await environmentOf(here.admin) };
  const other = await container(there);
  await look(3);
  expect(asked).toEqual(['stable']);
  expect(await deployments(here.environment)).toHaveLength(2);
  const second = await push(here, '2');
  expect(second).not.toBe(first);
  await look(3);
  expect(asked).toEqual(['stable', 'stable']);
  expect(await Promise.all([...ids, other].map(released))).toEqual([second, second, second]);
  const [, , last, ...more] = await deployments(here.environment);
  expect(more).toEqual([]);
  expect(last).toMatchObject({ requested_by_name: `${here.image.image_name}:stable`, automatic: true });
  expect((last!.snapshot as any).services.map((one: any) => one.serviceId).toSorted()).toEqual(ids.toSorted());
  await look();
  expect(await deployments(here.environment)).toHaveLength(3);
});

test('the first look deploys what was released from the tag with another image', async () => {
  const here = await place();
  await push(here, '1');
  const id = await container(here);
  const second = await push(here, '2');
  await look();
  expect(await released(id)).toBe(second);
});

test('what does not follow the tag stays as it is', async () => {
  const here = await place();
  const first = await push(here, '1');
  const { admin, environment, image } = here;
  const manual = await container(here, { auto_deploy: false });
  const pinned = await container(here, { tag: first });
  const stopped = await container(here);
  const uninstalled = await container(here);
  const fresh = ok(await admin.post(`/environment/${environment}/container`, { name: newId(), auto_deploy: true, ...image }), 201).id; // prettier-ignore
  const retagged = await container(here);
  const elsewhere = await container(await place(image.image_name));
  ok(await admin.post(`/container/${stopped}/stop?wait=30`), 200);
  ok(await admin.post(`/container/${uninstalled}/uninstall?wait=30`), 200);
  await registry.pushImage(image.image_name, 'next', { files: { version: 'next' } });
  ok(await admin.put(`/container/${retagged}`, { tag: 'next' }), 200);
  const before = await deployments(environment);
  await look();
  await push(here, '2');
  await look();
  expect(await deployments(environment)).toHaveLength(before.length);
  expect(await Promise.all([manual, pinned, retagged].map(released))).toEqual([first, first, first]);
  expect(ok(await admin.get(`/container/${fresh}/status`), 200).state).toBe('READY');
  // That of another organization, with the same names, is its own.
  expect(await released(elsewhere)).not.toBe(first);
});

test('an image is deployed once: what fails with it is left alone until the tag moves again', async () => {
  const here = await place();
  const { admin, environment } = here;
  const first = await push(here, '1');
  const id = await container(here);
  const variable = ok(await admin.post(`/container/${id}/environmentVariable`, { key: 'FAIL_START', value: 'yes' }), 201); // prettier-ignore
  await push(here, '2');
  await look();
  expect((await deployments(environment)).map(({ outcome }) => outcome)).toEqual(['SUCCESS', 'ERROR']);
  await look();
  expect(await deployments(environment)).toHaveLength(2);
  expect(await released(id)).toBe(first);
  ok(await admin.delete(`/container/${id}/environmentVariable/${variable.id}`), 204);
  const third = await push(here, '3');
  await look();
  expect(await released(id)).toBe(third);
});

test('a rollback holds until the tag moves again, also when it is redeployed', async () => {
  const here = await place();
  const first = await push(here, '1');
  const id = await container(here);
  await push(here, '2');
  await look();
  const execution_id = ok(await here.admin.get(`/container/${id}/deploymentHistoryV2`), 200).results[1].identifier.execution_id; // prettier-ignore
  ok(await here.admin.post(`/container/${id}/rollback?wait=30`, { execution_id }), 200);
  await look();
  ok(await here.admin.post(`/container/${id}/redeploy?wait=30`), 200);
  expect(await released(id)).toBe(first);
  const third = await push(here, '3');
  await look();
  expect(await released(id)).toBe(third);
});

test('a job follows the tag of its image', async () => {
  const here = await place();
  await push(here, '1');
  const body = {
    name: newId(),
    auto_deploy: true,
    source: { image: here.image },
    schedule: { cronjob: { scheduled_at: '0 0 1 1 *', arguments: ['true'] } },
  };
  const { id } = ok(await here.admin.post(`/environment/${here.environment}/job`, body), 201);
  ok(await here.admin.post(`/job/${id}/deploy?wait=30`), 200);
  const second = await push(here, '2');
  await look();
  expect(await released(id)).toBe(second);
});

test('a service whose last editor may not deploy it any more says so, and is deployed once somebody who may has saved it', async () => {
  const here = await place();
  const first = await push(here, '1');
  const [kept, refused] = [await container(here), await container(here, { name: 'shop' })];
  await sql`update service set last_updated_by = ${newId()}, last_updated_with = null where id = ${refused}`.execute(
    app.db,
  );
  const second = await push(here, '2');
  const warnings = async () => ok(await here.admin.get(`/container/${refused}/status`), 200).warnings ?? [];
  const message = expect.stringMatching(/^Whoever saved shop last may not deploy it any more/);
  for (const _look of [1, 2]) {
    await look();
    expect([await released(kept), await released(refused)]).toEqual([second, first]);
    expect(await warnings()).toMatchObject([{ code: 'TAG_NOT_DEPLOYED', message }]);
    expect((await TAG_REPORT.status(app.db)).lastFailure!.error).toMatch(/:stable: Whoever saved shop last/);
  }
  ok(await here.admin.put(`/container/${refused}`, { description: 'saved again' }), 200);
  await look();
  expect(await released(refused)).toBe(second);
  expect(await warnings()).toEqual([]);
  expect((await tags())[0]).toMatchObject({ put_off: [], error: null });
});

test('an environment on a locked cluster gets the image once it is unlocked', async () => {
  const here = await place();
  const first = await push(here, '1');
  const id = await container(here);
  const cluster = (await deployments(here.environment))[0]!.cluster_id;
  const lock = (at: Date | null) => app.db.updateTable('cluster').set({ locked_at: at }).where('id', '=', cluster).execute(); // prettier-ignore
  await lock(new Date());
  const second = await push(here, '2');
  await look();
  expect(await released(id)).toBe(first);
  const [waiting] = await tags();
  expect(waiting!.put_off).toEqual([id]);
  expect(waiting!.next_at.getTime() - Date.now()).toBeLessThan(70_000);
  await lock(null);
  await look();
  expect(await released(id)).toBe(second);
  expect((await tags())[0]!.put_off).toEqual([]);
});

test('tags that nothing follows any more are forgotten', async () => {
  const here = await place();
  await push(here, '1');
  const id = await container(here);
  await look();
  expect(await tags()).toHaveLength(1);
  ok(await here.admin.put(`/container/${id}`, { auto_deploy: false }), 200);
  await follow();
  expect(await tags()).toEqual([]);
});

test('a registry that hangs or fails delays no other organization, and is asked ever more seldom', async () => {
  const server: Server = createServer((_request, response) => void (isHanging || response.writeHead(500).end()));
  let isHanging = true;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bad = await place('acme/shop', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (let n = 0; n < 6; n++)
    ok(
      await bad.admin.post(`/environment/${bad.environment}/container`, {
        ...bad.image,
        tag: `t${n}`,
        name: newId(),
        auto_deploy: true,
      }),
      201,
    );
  const good = await place();
  await push(good, '1');
  const id = await container(good);
  await follow();
  process();
  process();
  // Two are asked for, and keep the others of their organization waiting.
  await expect.poll(() => asked.filter((tag) => tag.startsWith('t')).length).toBe(2);
  const second = await push(good, '2');
  // A look that began before the push may end after it, and puts off the next one.
  const lookAgain = async () => {
    await sql`update image_tag set next_at = now() where tag = 'stable'`.execute(app.db);
    for (const loop of loops) loop.nudge();
  };
  await expect.poll(() => released(id).finally(lookAgain), { interval: 50 }).toBe(second);
  expect(asked.filter((tag) => tag.startsWith('t'))).toHaveLength(2);
  isHanging = false;
  server.closeAllConnections();
  await look();
  const failed = (await tags()).filter(({ tag }) => tag !== 'stable');
  expect(failed).toHaveLength(6);
  for (const row of failed) {
    expect(row.error).toMatch(/registry/);
    expect(row.next_at.getTime() - Date.now()).toBeGreaterThan(2 * 0.9 * 300_000 - 10_000);
  }
  await new Promise((resolve) => server.close(resolve));
});
