import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { rbacManifest } from '#runtimes/kubernetes/rights.ts';
import { pathOf } from '#runtimes/kubernetes/cluster.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { installApis } from '#test/harness/kubernetes/apis.ts';
import { findTraefik, Traefik } from '#test/harness/kubernetes/traefik.ts';
import { makeAccount, type ManifestObject } from '#test/harness/kubernetes-account.ts';
import { KubernetesProgram } from '#test/harness/kubernetes-program.ts';

const cluster = inject('kubernetes');
const isLeftOut = cluster.directory === null || findTraefik() === null;
if (isLeftOut)
  console.warn('Left out: a real gateway. It needs a cluster of the tests, and the program of `.ci/traefik`.');

const ACCOUNT = `gateway-${randomUUID().slice(0, 8)}`;
let place: KubernetesProgram;
let traefik: Traefik;
let removeApis: () => Promise<void>;

beforeAll(async () => {
  if (isLeftOut) return;
  removeApis = await installApis(cluster);
  traefik = await Traefik.start(cluster);
  place = await KubernetesProgram.start(cluster);
  await place.registry.pushImage('shop', '1', {
    files: {
      'bin/busybox': { content: await readFile(findProgram('busybox')!), mode: 0o755 },
      'index.html': 'shop',
    },
    config: { Cmd: ['/bin/busybox', 'httpd', '-f', '-p', '8080'] },
  });
}, 120_000);
afterAll(async () => {
  if (isLeftOut) return;
  await place.close();
  await traefik.stop();
  await removeApis();
}, 120_000);

describe.skipIf(isLeftOut)('a container behind a real Gateway', () => {
  test('shows its requests by status and its latency in the metrics of its cluster', { timeout: 300_000 }, async () => {
    const { program, administrator } = place;
    await administrator.connection.call('PATCH', pathOf('Gateway', 'traefik', 'traefik'), {
      body: { metadata: { labels: { 'quarterdeck.gateway': 'true' } } },
      type: 'application/merge-patch+json',
    });
    const objects = rbacManifest(ACCOUNT) as ManifestObject[];
    const clusterId = await place.makeCluster();
    await place.useKubeconfig(clusterId, await makeAccount(cluster, administrator, objects, ACCOUNT));
    expect(await place.deployCluster(clusterId)).toMatchObject({ status: 'DEPLOYED' });
    const environment = await place.makeEnvironment(clusterId);
    const container = await program.ask('POST', `/environment/${environment}/container`, {
      name: 'shop',
      registry_id: await place.makeImageRegistry(),
      image_name: 'shop',
      tag: '1',
      cpu: 100,
      memory: 64,
      ports: [{ internal_port: 8080, publicly_accessible: true, protocol: 'HTTP' }],
      healthchecks: {},
    });
    await program.ask('POST', `/container/${container.id}/deploy?wait=100`);
    const { results: links } = await program.ask('GET', `/container/${container.id}/link`);
    const { hostname } = new URL(links[0].url);
    const series = async (query: string) => {
      const path = `/cluster/${clusterId}/metrics?endpoint=query&query=${encodeURIComponent(query)}`;
      return JSON.parse((await program.ask('GET', path)).metrics).data.result as { value: [number, string] }[];
    };
    const isMeasured = async () => {
      await traefik.get(hostname, '/');
      await traefik.get(hostname, '/missing');
      const found = await Promise.all(
        [
          'requests_per_second{status="2xx"}',
          'requests_per_second{status="4xx"}',
          'latency_seconds{quantile="0.95"}',
        ].map((name) => series(`quarterdeck_service_${name}`)),
      );
      return found.every(([one]) => Number(one?.value[1]) > 0);
    };
    await expect.poll(isMeasured, { timeout: 240_000, interval: 1_000 }).toBe(true);
  });
});
