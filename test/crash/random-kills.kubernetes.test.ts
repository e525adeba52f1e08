import { readFile } from 'node:fs/promises';
import type { Server } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { kubernetesClusters } from '#app/kubernetes.ts';
import { createRuntimes, type Runtimes } from '#app/runtimes.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { killAtRandom, removeAll, type Services } from '#test/crash/harness/kills.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import { startReceiver, type Receiver } from '#test/crash/harness/receiver.ts';
import { letPull } from '#test/harness/kubernetes-registry.ts';
import { startRegistry, type TestRegistry } from '#test/harness/registry.ts';

const KILLS = process.env.SOAK ? 100 : 4;
const cluster = inject('kubernetes');

const machine = useMachine({
  QUARTERDECK_WORKER_SLOTS: '4',
  QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: `127.0.0.0/8, ${cluster.nodeAddress}/32`,
});
let receiver: Receiver;
let registry: TestRegistry;
let forwarder: Server;
let runtimes: Runtimes;
let clusterId: string;
let registryId: string;
let actor: HttpActor;

/** Connects the cluster of an organization, as `PUT …/kubeconfig` does, and deploys it. */
async function connect(): Promise<void> {
  const url = `/organization/${actor.organizationId}/cluster`;
  const { results } = await actor.ask('GET', url, 200);
  clusterId = results[0].id;
  const answer = await fetch(`${machine.processes[0]!.url}${url}/${clusterId}/kubeconfig`, {
    method: 'PUT',
    headers: { Authorization: `Token ${actor.token}`, 'Content-Type': 'application/x-yaml' },
    body: cluster.kubeconfig,
  });
  expect(answer.status, await answer.text()).toBeLessThan(300);
  const deployed = await actor.ask('POST', `${url}/${clusterId}/deploy?wait=60`, 200);
  expect(deployed).toMatchObject({ status: 'DEPLOYED' });
}

async function pushImage(): Promise<void> {
  const busybox = { content: await readFile(findProgram('busybox')!), mode: 0o755 };
  const Cmd = ['/bin/busybox', 'sh', '-c', 'trap "exit 0" TERM; /bin/busybox httpd -f -p 8080 & wait'];
  await registry.pushImage('shop', '1', { files: { 'bin/busybox': busybox }, config: { Cmd } });
  const body = { name: 'images', kind: 'GENERIC_CR', url: registry.url, config: {} };
  registryId = (await actor.ask('POST', `/organization/${actor.organizationId}/containerRegistry`, 201, body)).id;
}

const CONTAINERS: Services = {
  kind: 'container',
  make: async (user, environmentId, name) => {
    const image = { registry_id: registryId, image_name: 'shop', tag: '1', cpu: 50, memory: 32 };
    const ports = [{ internal_port: 8080, publicly_accessible: true, protocol: 'HTTP' }];
    return (await user.ask('POST', `/environment/${environmentId}/container`, 201, { name, ...image, ports })).id;
  },
};

beforeAll(async () => {
  receiver = await startReceiver();
  registry = await startRegistry();
  if (cluster.directory !== null) forwarder = await letPull(cluster, registry);
  await machine.start('api', { role: 'api' });
  await machine.start('worker 1', { role: 'worker' });
  await machine.start('worker 2', { role: 'worker' });
  actor = await machine.organization('organization', { runtime: 'kubernetes' });
  await connect();
  await pushImage();
  const { platform, installation } = machine;
  const connected = kubernetesClusters({ platform, installation, nodeId: await machine.nodeId() });
  runtimes = createRuntimes(platform.settings, installation.id, pino({ level: 'silent' }), undefined, connected);
}, 120_000);
afterAll(async () => {
  await removeAll(machine, await runtimes.runtimeOf({ id: clusterId, runtime: 'kubernetes' }));
  await runtimes.close();
  forwarder?.close();
  await registry.stop();
  await receiver.close();
}, 120_000);

test.skipIf(cluster.directory === null)(
  `on Kubernetes: processes are killed ${KILLS} times at random, and what runs is what the database says`,
  { timeout: process.env.SOAK ? 6 * 3_600_000 : 900_000 },
  async () => {
    const runtime = await runtimes.runtimeOf({ id: clusterId, runtime: 'kubernetes' });
    await killAtRandom({ machine, receiver, kills: KILLS, runtime, actors: [actor], services: CONTAINERS });
  },
);
