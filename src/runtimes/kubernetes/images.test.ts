import { expect, test } from 'vitest';
import { newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { repositoryOf, type ImageBuilder, type ImageRegistries } from '#runtimes/image-store.ts';
import { RuntimeError, type RuntimeReport } from '#runtimes/runtime.ts';
import type { Cluster } from './cluster.ts';
import { buildingOf, withBuilds } from './images.ts';

const PREFIX = 'registry.example.com/team/';
const identity = newIdentity('installation');
const other = newIdentity('installation');
const digest = (n: number) => `sha256:${String(n).padStart(64, '0')}`;

/** Returns a builder and a registry in memory, with what was asked of them. */
function makeImages(changes: { hasTarget?: boolean; builderAway?: boolean } = {}) {
  const { hasTarget = true, builderAway = false } = changes;
  /** Digests by image with its tag. */
  const stored = new Map<string, string>();
  const calls: string[] = [];
  const away = () => Promise.reject(new RuntimeError('unreachable', 'No engine answers: start one.'));
  const builder: ImageBuilder = {
    architecture: builderAway ? away : async () => 'amd64',
    build: async () => ({ image: (calls.push('build'), 'local') }),
    push: async (_image, { repository, tag }) => {
      calls.push('push');
      stored.set(`${repository}:${tag}`, digest(stored.size + 1));
      return stored.get(`${repository}:${tag}`)!;
    },
    discard: builderAway ? away : async () => void calls.push('discard'),
  };
  const registries: ImageRegistries = {
    buildRefusal: async () => (hasTarget ? null : 'Set registry.id.'),
    target: async (id) => (hasTarget ? { repository: PREFIX + repositoryOf(id), access: null } : null),
    prepare: async () => void calls.push('prepare'),
    digestOf: async (image) =>
      stored.get(image) ?? [...stored.values()].find((each) => image.endsWith(`@${each}`)) ?? null,
    accessOf: async () => null,
    list: async (repository) =>
      [...stored].filter(([name]) => name.startsWith(`${repository}:`)).map(([, each]) => `${repository}@${each}`),
    remove: async (image) => {
      for (const [name, each] of stored) if (image.endsWith(`@${each}`)) stored.delete(name);
    },
  };
  return { images: { builder, registries }, calls, stored };
}

test('an image is built and pushed once for its key, whichever process asks', async () => {
  const { images, calls } = makeImages();
  const spec = newBuild(identity, '/', { cacheKey: 'one' });
  const image = `${PREFIX}${repositoryOf(identity.serviceId)}@${digest(1)}`;
  expect(await buildingOf(images).build(spec, newContext())).toEqual({ image, cached: false });
  expect(await buildingOf(images).build(spec, newContext())).toEqual({ image, cached: true });
  expect(calls).toEqual(['prepare', 'build', 'push']);
});

test('nothing is built for a cluster without a registry', async () => {
  const { images, calls } = makeImages({ hasTarget: false });
  await expect(buildingOf(images).build(newBuild(identity, '/'), newContext())).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining('registry.id'),
  });
  expect(calls).toEqual([]);
});

test('images of another service, and images that were not built, are neither removed nor given credentials', async () => {
  const { images, stored } = makeImages();
  const runtime = buildingOf(images);
  const { image } = await runtime.build(newBuild(identity, '/'), newContext());
  await runtime.removeImages(other, [image]);
  await runtime.removeImages(other, 'all');
  await runtime.removeImages(identity, [image.replace('@', '-base@')]);
  expect(stored.size).toBe(1);
  expect(await runtime.registryOf(other, image)).toBe(undefined);
  expect(await runtime.registryOf(identity, image)).toBe(null);
});

test('all images of a service are removed, also while no builder answers', async () => {
  const { images, stored } = makeImages({ builderAway: true });
  const runtime = buildingOf(images);
  await runtime.build(newBuild(identity, '/', { cacheKey: 'one' }), newContext());
  await runtime.build(newBuild(identity, '/', { cacheKey: 'two' }), newContext());
  await runtime.removeImages(identity, 'all');
  expect(stored.size).toBe(0);
});

/** Cluster whose nodes have these architectures. */
const clusterOf = (architectures: string[]) =>
  ({
    connection: {
      get: async (_path: string, { query }: { query: { labelSelector: string } }) => ({
        items: architectures.filter((each) =>
          query.labelSelector.includes('!=')
            ? !query.labelSelector.endsWith(`!=${each}`)
            : query.labelSelector.endsWith(`=${each}`),
        ),
      }),
    },
  }) as unknown as Cluster;

test.each([
  [makeImages().images, ['amd64'], undefined, []],
  [makeImages({ hasTarget: false }).images, ['amd64'], /registry\.id/, []],
  [makeImages({ builderAway: true }).images, ['amd64'], /No engine answers/, []],
  [makeImages().images, ['arm64'], /built for amd64, and no node has/, []],
  [makeImages().images, ['arm64', 'amd64'], undefined, [expect.stringContaining('exec format error')]],
  [undefined, ['amd64'], /Nothing is built/, []],
])('a report tells what builds lack, with the remedy (%#)', async (images, architectures, lack, limits) => {
  const report: RuntimeReport = { ok: true, description: 'Kubernetes', limits: [], missing: { tasks: 'no' } };
  const found = await withBuilds(clusterOf(architectures), images, report);
  expect(found).toMatchObject({ ok: true, limits, missing: { tasks: 'no' } });
  if (lack === undefined) expect(found.missing).not.toHaveProperty('builds');
  else expect(found.missing?.builds).toMatch(lack);
});
