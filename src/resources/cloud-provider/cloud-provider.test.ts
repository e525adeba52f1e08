import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();
const PROVIDERS = { aws: 'eu-west-3', scaleway: 'fr-par', gcp: 'europe-west9', azure: 'francecentral' };

describe.each(Object.entries(PROVIDERS))('%s', (provider, region) => {
  test('lists its regions once each, with zones of their own', async () => {
    const reader = await (await app.organization()).withScope('READ');
    const { results, pagination } = ok(await reader.get(`/${provider}/region`), 200);
    const names = results.map(({ name }: { name: string }) => name);
    expect(names).toContain(region);
    expect(new Set(names).size).toBe(names.length);
    const zones = results.flatMap((one: { zones: string[] }) => one.zones);
    expect(new Set(zones).size).toBe(zones.length);
    expect(pagination.total_count).toBe(names.length);
    expect(ok(await reader.get(`/${provider}/region?page=2&page_size=1`), 200).results).toEqual([results[1]]);
    const all = ok(await reader.get('/cloudProvider'), 200).results;
    expect(all.flatMap((one: { regions: object[] }) => one.regions)).toEqual(expect.arrayContaining(results));
  });

  test('lists features that a cluster takes by their ids', async () => {
    const admin = await app.organization();
    const { results } = ok(await admin.get(`/${provider}/clusterFeature`), 200);
    expect(results.length).toBeGreaterThan(0);
    const features = results
      .filter((feature: { value_object?: object }) => feature.value_object)
      .map((feature: { id: string; value_object: { value: unknown } }) => ({
        id: feature.id,
        value: feature.value_object.value,
      }));
    const cloud_provider = { aws: 'AWS', scaleway: 'SCW', gcp: 'GCP', azure: 'AZURE' }[provider];
    const cluster = { name: newId(), region, cloud_provider, features };
    const made = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, cluster), 201);
    expect(made.features.map(({ id }: { id: string }) => id)).toEqual(features.map(({ id }: { id: string }) => id));
  });
});

describe('instance types', () => {
  const NODES = [
    '/aws/eks/instanceType/eu-west-3',
    '/azure/aks/instanceType/francecentral',
    '/gcp/instanceType/europe-west9',
    '/scaleway/instanceType/fr-par-1',
    '/aws/instanceType',
    '/scaleway/instanceType',
  ];
  test.each(NODES)('of %s have names of their own, processors and memory', async (url) => {
    const admin = await app.organization();
    const { results } = ok(await admin.get(url), 200);
    expect(new Set(results.map(({ type }: { type: string }) => type)).size).toBe(results.length);
    for (const type of results) {
      expect(type.cpu).toBeGreaterThan(0);
      expect(Number.isInteger(type.ram_in_gb) && type.ram_in_gb > 0, type.type).toBe(true);
    }
  });

  test('are filtered by what a node needs and by GPU', async () => {
    const admin = await app.organization();
    const url = '/aws/eks/instanceType/eu-west-3';
    const typesOf = async (query: string) =>
      ok(await admin.get(url + query), 200).results as { type: string; gpu_info?: object; ram_in_gb: number }[];
    expect((await typesOf('?gpu=ONLY')).every(({ gpu_info }) => gpu_info)).toBe(true);
    expect((await typesOf('?gpu=ONLY')).length).toBeGreaterThan(0);
    for (const query of ['?gpu=EXCLUDE', '?with_gpu=false'])
      expect((await typesOf(query)).some(({ gpu_info }) => gpu_info)).toBe(false);
    expect((await typesOf('')).some(({ ram_in_gb }) => ram_in_gb < 4)).toBe(true);
    expect((await typesOf('?only_meets_resource_reqs=true')).some(({ ram_in_gb }) => ram_in_gb < 4)).toBe(false);
    expect((await admin.get(`${url}?gpu=MAYBE`)).status).toBe(400);
  });

  test.each(['/aws/eks', '/azure/aks', '/gcp'])(
    'of %s have ARM processors exactly in the regions that have them',
    async (path) => {
      const admin = await app.organization();
      const { results } = ok(await admin.get(`/${path.split('/')[1]}/region`), 200);
      for (const { name, arm_supported } of results) {
        const types = ok(await admin.get(`${path}/instanceType/${name}`), 200).results;
        const hasArm = types.some(({ architecture }: { architecture: string }) => architecture === 'ARM64');
        expect(hasArm, name).toBe(arm_supported);
      }
    },
  );

  test('of Azure have the network of their size', async () => {
    const admin = await app.organization();
    const { results } = ok(await admin.get('/azure/aks/instanceType/francecentral'), 200);
    const network = new Map(
      results.map((one: { type: string; bandwidth_in_gbps: string }) => [one.type, one.bandwidth_in_gbps]),
    );
    expect(['F2s', 'F4s', 'F8s', 'F32s'].map((size) => network.get(`Standard_${size}_v2`))).toEqual([
      '5',
      '10',
      '12.5',
      '16',
    ]);
    expect(network.get('Standard_D2s_v5')).toBe('12.5');
  });

  test.each([
    '/aws/eks/instanceType/nowhere',
    '/azure/aks/instanceType/nowhere',
    '/gcp/instanceType/nowhere',
    '/scaleway/instanceType/nowhere-1',
    '/aws/managedDatabase/instanceType/nowhere/REDIS',
    '/aws/managedDatabase/instanceType/eu-west-3/constructor',
  ])('of what a provider does not have are 404: %s', async (url) => {
    const admin = await app.organization();
    expect((await admin.get(url)).status).toBe(404);
    expect((await app.anonymous('GET', url)).status).toBe(401);
  });

  test('of databases are there for every engine that AWS lists', async () => {
    const admin = await app.organization();
    for (const { name } of ok(await admin.get('/aws/managedDatabase/type'), 200).results)
      expect(
        ok(await admin.get(`/aws/managedDatabase/instanceType/eu-west-3/${name}`), 200).results.length,
      ).toBeGreaterThan(0);
    expect(ok(await admin.get('/scaleway/managedDatabase/type'), 200).results).toContainEqual({ name: 'POSTGRESQL' });
  });
});
