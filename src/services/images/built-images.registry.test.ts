import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { readSettings } from '#platform/settings/index.ts';
import { repositoryOf } from '#runtimes/image-store.ts';
import { createBuiltImages } from '#services/images/built-images.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { ALLOW_LOOPBACK, REGISTRY_USER, startRegistry, type TestRegistry } from '#test/harness/registry.ts';

const NODE = newId();
/** Returns the operator's rules for organizations, as settings. */
function pickRules(env: Record<string, string>) {
  const { organizationRuntimes, organizationNodes } = readSettings(env);
  return { organizationRuntimes, organizationNodes };
}
const app = useApp(ALLOW_LOOPBACK);
let registry: TestRegistry;
beforeAll(async () => {
  registry = await startRegistry({ auth: 'token' });
});
afterAll(() => registry.stop());

const registriesOf = (admin: Actor) => `/organization/${admin.organizationId}/containerRegistry`;

async function makeRegistry(admin: Actor, body: object = {}): Promise<string> {
  const ours = { name: 'ours', kind: 'GENERIC_CR', url: `${registry.url}/team`, config: REGISTRY_USER, ...body };
  return ok(await admin.post(registriesOf(admin), ours), 201).id as string;
}

async function makeCluster(admin: Actor, runtime = 'kubernetes') {
  const body = { name: `c ${newId()}`, region: 'here', cloud_provider: 'ON_PREMISE', runtime };
  const { id } = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, body), 201);
  const url = `/organization/${admin.organizationId}/cluster/${id}`;
  const choose = (registryId: unknown) => admin.put(`${url}/advancedSettings`, { 'registry.id': registryId });
  return { id: id as string, choose, images: createBuiltImages(app.platform, { clusterId: id, nodeId: NODE }) };
}

describe('the registry of a cluster', () => {
  test('is one of its organization, is shown there, and stays as long as the cluster names it', async () => {
    const admin = await app.organization();
    const { id, choose } = await makeCluster(admin);
    const registryId = await makeRegistry(admin);
    expect(ok(await choose(registryId), 200)).toMatchObject({ 'registry.id': registryId });
    const url = `${registriesOf(admin)}/${registryId}`;
    expect(ok(await admin.get(url), 200)).toMatchObject({ cluster: { id } });
    expect((await admin.delete(url)).body.message).toContain('registry.id');
    ok(await choose(null), 200);
    expect(ok(await admin.get(url), 200)).not.toHaveProperty('cluster');
    ok(await admin.delete(url), 204);
  });

  test('is refused where it is of another organization, or where nothing can be pushed', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const kubernetes = await makeCluster(admin);
    const fake = await makeCluster(admin, 'fake');
    for (const [cluster, registryId, message] of [
      [kubernetes, await makeRegistry(other), 'names no container registry of this organization'],
      [kubernetes, newId(), 'names no container registry of this organization'],
      [kubernetes, 'ours', 'registry.id'],
      [kubernetes, await makeRegistry(admin, { kind: 'PUBLIC_ECR', url: undefined, config: {} }), 'nothing is pushed'],
      [
        kubernetes,
        await makeRegistry(admin, { kind: 'DOCKER_HUB', url: 'https://docker.io' }),
        'https://docker.io/<namespace>',
      ],
      [fake, await makeRegistry(admin), 'Kubernetes only'],
    ] as const) {
      const answer = await cluster.choose(registryId);
      expect(answer, message).toMatchObject({ status: 400, body: { errors: [{ field: 'registry.id' }] } });
      expect(JSON.stringify(answer.body)).toContain(message);
    }
  });
});

test('an organization that may not use Docker, or not this machine, builds nothing on its engine', async () => {
  const admin = await app.organization();
  const { id, choose } = await makeCluster(admin);
  ok(await choose(await makeRegistry(admin)), 200);
  for (const [rules, message] of [
    [{ QUARTERDECK_ORGANIZATION_RUNTIMES: '*=kubernetes' }, /may not use the runtime docker.*ORGANIZATION_RUNTIMES/],
    [{ QUARTERDECK_ORGANIZATION_NODES: `*=${newId()}` }, /may not use the machine .*ORGANIZATION_NODES/],
  ] as const) {
    const settings = { ...app.platform.settings, ...pickRules(rules) };
    const images = createBuiltImages({ ...app.platform, settings }, { clusterId: id, nodeId: NODE });
    expect(await images.buildRefusal()).toMatch(message);
  }
});

describe('built images', () => {
  test('are found, listed and removed in the registry of their cluster, which lends its credentials', async () => {
    const admin = await app.organization();
    const { choose, images } = await makeCluster(admin);
    const serviceId = newId();
    expect(await images.buildRefusal()).toContain('registry.id');
    expect(await images.target(serviceId)).toBe(null);
    ok(await choose(await makeRegistry(admin)), 200);
    const repository = `${registry.host}/team/${repositoryOf(serviceId)}`;
    const access = { host: registry.host, ...REGISTRY_USER };
    expect([await images.buildRefusal(), await images.target(serviceId)]).toEqual([null, { repository, access }]);
    expect(await images.digestOf(`${repository}:1`)).toBe(null);
    expect(await images.list(repository)).toEqual([]);
    const push = (tag: string) => registry.pushImage(`team/${repositoryOf(serviceId)}`, tag);
    const [one, two] = [await push('1'), await push('2')];
    expect(await images.digestOf(`${repository}:1`)).toBe(one);
    expect(await images.digestOf(`${repository}@${one}`)).toBe(one);
    expect((await images.list(repository)).toSorted()).toEqual(
      [`${repository}@${one}`, `${repository}@${two}`].toSorted(),
    );
    for (const _time of [1, 2]) await images.remove(`${repository}@${one}`);
    expect([await images.digestOf(`${repository}:1`), await images.digestOf(`${repository}:2`)]).toEqual([null, two]);
    // Another registry for later images: those before are still in this one.
    ok(await choose(await makeRegistry(admin, { url: 'https://registry.example.com' })), 200);
    expect(await images.accessOf(`${repository}@${two}`)).toEqual(access);
    expect(await images.digestOf(`${repository}:2`)).toBe(two);
  });

  test('of an organization are neither found nor removed for a cluster of another one', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const [ours, theirs] = [await makeCluster(admin), await makeCluster(other)];
    ok(await ours.choose(await makeRegistry(admin)), 200);
    const name = repositoryOf(newId());
    const image = `${registry.host}/team/${name}@${await registry.pushImage(`team/${name}`, '1')}`;
    expect([await theirs.images.digestOf(image), await theirs.images.accessOf(image)]).toEqual([null, null]);
    await theirs.images.remove(image);
    expect(await ours.images.digestOf(image)).not.toBe(null);
  });

  test('are not taken for lost while their registry refuses the credentials or is away', async () => {
    const admin = await app.organization();
    const { choose, images } = await makeCluster(admin);
    const image = (host: string) => `${host}/team/${repositoryOf(newId())}:1`;
    ok(await choose(await makeRegistry(admin, { config: { username: 'ada', password: 'wrong' } })), 200);
    await expect(images.digestOf(image(registry.host))).rejects.toMatchObject({ code: 'failed' });
    ok(await choose(await makeRegistry(admin, { url: 'http://127.0.0.1:9/team' })), 200);
    await expect(images.digestOf(image('127.0.0.1:9'))).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('stay in a registry that lets nobody remove them, which is said once', async () => {
    const server = await startRegistryWithoutRemoval();
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const warn = vi.spyOn(app.platform.log, 'warn');
    try {
      const admin = await app.organization();
      const { choose, images } = await makeCluster(admin);
      ok(await choose(await makeRegistry(admin, { url: `http://${host}/team` })), 200);
      for (const _time of [1, 2]) await images.remove(`${host}/team/x@sha256:${'0'.repeat(64)}`);
      expect(warn.mock.calls.map(([, text]) => text)).toEqual([expect.stringContaining('lets nobody remove images')]);
    } finally {
      warn.mockRestore();
      server.close();
    }
  });
});

async function startRegistryWithoutRemoval(): Promise<Server> {
  const server = createServer(({ method }, response) => response.writeHead(method === 'DELETE' ? 405 : 200).end('{}'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
