import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, inject } from 'vitest';
import { describeRuntimeContract } from '#runtimes/runtime.contract.ts';
import { addNode } from '#test/harness/docker-images.ts';
import { importImage } from '#test/harness/kubernetes-cluster.ts';
import { startMetricsApi, type MetricsApi } from '#test/harness/kubernetes/metrics-api.ts';
import { createKubernetesRuntime } from './index.ts';
import { TestGateway, leftoversOf, makeVolumes, openCluster, removeMade } from './testing.ts';

/** Volumes that the tests of storage need; the cluster has nothing that makes them. */
const VOLUMES = 16;

let metrics: MetricsApi | undefined;
beforeAll(async () => {
  const cluster = inject('kubernetes');
  // A cluster that was there before has its own.
  if (cluster.directory !== null) metrics = await startMetricsApi(cluster);
});
afterAll(() => metrics?.stop());

describeRuntimeContract(
  'kubernetes',
  async ({ installation }) => {
    const test = inject('kubernetes');
    const { options, cluster } = openCluster(test, installation);
    const gateway = new TestGateway(cluster);
    await makeVolumes(cluster, VOLUMES);
    return {
      runtime: createKubernetesRuntime(options),
      image: async (folder) => {
        const name = `quarterdeck-contract-${installation.slice(0, 8)}:1`;
        const config = { WorkingDir: '/app', Env: ['FROM_IMAGE=yes'], Cmd: ['node', 'server.mjs'] };
        const fill: Parameters<typeof importImage>[2] = async (archive) => {
          await addNode(archive);
          for (const file of await readdir(folder))
            archive.entry({ name: `app/${file}` }, await readFile(join(folder, file)));
        };
        await importImage(test, name, fill, config);
        return name;
      },
      get: (host, path) => gateway.get(host, path),
      leftovers: (identity) => leftoversOf(cluster, identity),
      reopen: async () => createKubernetesRuntime(options),
      close: async () => {
        await removeMade(cluster);
        await cluster.connection.close();
      },
    };
  },
  {
    timeoutMs: 90_000,
    isSmall: true,
    without: {
      egress: 'commands do not run there yet',
      tasks: 'commands do not run there yet',
      builds: 'images come from registries',
      disk: 'files of pods are the business of the cluster',
      namesAtOnce: 'nodes learn of new pods a moment after they are ready',
      streams: 'the cluster does not tell outputs apart',
      variablesOfPrograms: "they would stand in the cluster's audit log",
      endOfPrograms: 'a program outlives its connection',
    },
  },
);
