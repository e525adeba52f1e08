import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { rbacManifest } from '#app/kubernetes.ts';
import { TestGateway, leftoversOf, openCluster } from '#runtimes/kubernetes/testing.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { makeAccount, type ManifestObject } from '#test/harness/kubernetes-account.ts';
import { letPull } from '#test/harness/kubernetes-registry.ts';
import { Program } from '#test/harness/program.ts';
import { startRegistry, type TestRegistry } from '#test/harness/registry.ts';

const cluster = inject('kubernetes');
const ACCOUNT = `account-${randomUUID().slice(0, 8)}`;

let program: Program;
let registry: TestRegistry;
let forwarder: Server;
let organization: string;
let environment: string;
let clusterId: string;
let registryId: string;
let administrator: ReturnType<typeof openCluster>['cluster'];

const connectCluster = async (name: string, kubeconfig: string): Promise<string> => {
  const body = { name, region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'kubernetes' };
  const { id } = await program.ask('POST', `/organization/${organization}/cluster`, body);
  await replaceKubeconfig(id, kubeconfig);
  return id;
};

const replaceKubeconfig = (id: string, kubeconfig: string) =>
  program.putText(`/organization/${organization}/cluster/${id}/kubeconfig`, kubeconfig, 'application/x-yaml');

beforeAll(async () => {
  administrator = openCluster(cluster, 'none').cluster;
  registry = await startRegistry();
  if (cluster.directory !== null) forwarder = await letPull(cluster, registry);
  const busybox = { content: await readFile(findProgram('busybox')!), mode: 0o755 };
  const Cmd = [
    '/bin/busybox',
    'sh',
    '-c',
    'trap "exit 0" TERM; echo serving; cd /; /bin/busybox httpd -f -p 8080 & wait',
  ];
  for (const tag of ['1', '2'])
    await registry.pushImage('shop', tag, {
      files: { 'bin/busybox': busybox, 'index.html': `release ${tag}` },
      config: { Cmd },
    });
  program = await Program.start({
    QUARTERDECK_RUNTIME: 'fake',
    QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: `127.0.0.0/8, ${cluster.nodeAddress}/32`,
  });
  organization = (await program.ask('GET', '/organization')).results[0].id;
  const ofRegistry = { name: 'images', kind: 'GENERIC_CR', url: registry.url, config: {} };
  registryId = (await program.ask('POST', `/organization/${organization}/containerRegistry`, ofRegistry)).id;
}, 120_000);

afterAll(async () => {
  await program.close();
  forwarder?.close();
  await registry.stop();
  await administrator.connection.close();
}, 120_000);

describe.skipIf(cluster.directory === null)('a Kubernetes cluster', () => {
  test(
    'is connected with the printed account, and says which rights another account lacks',
    { timeout: 120_000 },
    async () => {
      const objects = rbacManifest(ACCOUNT) as ManifestObject[];
      const kubeconfig = await makeAccount(administrator, cluster, objects, ACCOUNT);
      clusterId = await connectCluster('k8s', kubeconfig);
      const url = `/organization/${organization}/cluster/${clusterId}`;
      expect(await program.ask('POST', `${url}/deploy?wait=60`)).toMatchObject({ status: 'DEPLOYED' });
      const { results } = await program.ask('GET', `/organization/${organization}/cluster`);
      expect(results.find(({ id }: { id: string }) => id === clusterId)).toMatchObject({
        version: expect.stringMatching(/^Kubernetes v1\.\d+\.\d+, 1 node$/),
      });

      const poor = `${ACCOUNT}-poor`;
      const rights = objects.filter(({ kind }) => !kind.startsWith('ClusterRole'));
      const renamed = JSON.parse(JSON.stringify(rights).replaceAll(ACCOUNT, poor)) as ManifestObject[];
      const other = await connectCluster('poor', await makeAccount(administrator, cluster, renamed, poor));
      const otherUrl = `/organization/${organization}/cluster/${other}`;
      expect(await program.ask('POST', `${otherUrl}/deploy?wait=60`)).toMatchObject({ status: 'DEPLOYMENT_ERROR' });
      const { results: lines } = await program.ask('GET', `${otherUrl}/logs`);
      expect(lines.at(-1).error.user_log_message).toMatch(
        /lacks rights: .*create, .*deployments\.apps \(each service has one\).*quarterdeck cluster rbac/,
      );
    },
  );

  test(
    'runs a container of a registry: deployed, read, restarted, rolled on and back, stopped, removed',
    { timeout: 240_000 },
    async () => {
      const project = (await program.ask('POST', `/organization/${organization}/project`, { name: 'shop' })).id;
      const made = await program.ask('POST', `/project/${project}/environment`, { name: 'k8s', cluster_id: clusterId });
      environment = made.id;
      const container = await program.ask('POST', `/environment/${environment}/container`, {
        name: 'shop',
        registry_id: registryId,
        image_name: 'shop',
        tag: '1',
        cpu: 100,
        memory: 64,
        ports: [{ internal_port: 8080, publicly_accessible: true, protocol: 'HTTP' }],
        healthchecks: {
          readiness_probe: { type: { http: { port: 8080, path: '/' } }, initial_delay_seconds: 0, period_seconds: 1 },
        },
      });
      const of = `/container/${container.id}`;
      const act = (action: string, body?: object) => program.ask('POST', `${of}/${action}?wait=100`, body);
      await act('deploy');
      const { installation } = program.running.base;
      const gateway = new TestGateway({ ...administrator, installation: installation.id });
      const { results: links } = await program.ask('GET', `${of}/link`);
      const { hostname } = new URL(links[0].url);
      const served = async () => (await gateway.get(hostname, '/')).body;
      expect(await served()).toBe('release 1');
      const states = async () => (await program.ask('GET', `${of}/status`)).state;
      expect(await states()).toBe('DEPLOYED');
      const { results: lines } = await program.ask('GET', `${of}/log`);
      expect(lines.map(({ message }: { message: string }) => message)).toContain('serving');

      await act('restart-service');
      await act('deploy', { image_tag: '2' });
      expect(await served()).toBe('release 2');
      await act('deploy', { image_tag: '1' });
      expect(await served()).toBe('release 1');
      await act('stop');
      expect((await gateway.get(hostname, '/')).status).toBe(503);
      await act('deploy');
      expect(await served()).toBe('release 1');

      const identity = { serviceId: container.id } as Parameters<typeof leftoversOf>[1];
      expect(await leftoversOf(administrator, identity)).not.toEqual([]);
      await program.ask('DELETE', of);
      await expect.poll(() => leftoversOf(administrator, identity), { timeout: 60_000 }).toEqual([]);
    },
  );

  test('refuses what does not run there before anything is queued, and says why', { timeout: 60_000 }, async () => {
    const application = await program.ask('POST', `/environment/${environment}/application`, {
      name: 'built',
      git_repository: { url: program.makeRepository().url },
    });
    const { status, text } = await program.send('POST', `/application/${application.id}/deploy`);
    expect([status, JSON.parse(text).message]).toEqual([
      400,
      expect.stringContaining('built is built from its sources'),
    ]);
  });

  test('has nothing left of an environment that is deleted', { timeout: 90_000 }, async () => {
    const namespaces = async () => {
      const { items } = await administrator.connection.get<{ items: ManifestObject[] }>('/api/v1/namespaces');
      return items.map(({ metadata }) => metadata.name).filter((name) => name.includes(environment));
    };
    expect(await namespaces()).toHaveLength(1);
    await program.ask('DELETE', `/environment/${environment}`);
    await expect
      .poll(() => program.send('GET', `/environment/${environment}`).then(({ status }) => status), { timeout: 30_000 })
      .toBe(404);
    await program.keepHouse();
    await expect.poll(namespaces, { timeout: 30_000 }).toEqual([]);
  });

  test(
    'whose kubeconfig no longer works is told so, and works again once that is replaced',
    { timeout: 120_000 },
    async () => {
      const url = `/organization/${organization}/cluster/${clusterId}`;
      const revoked = parse(cluster.kubeconfig) as { users: { user: object }[] };
      revoked.users[0]!.user = { token: 'revoked' };
      await replaceKubeconfig(clusterId, JSON.stringify(revoked));
      expect(await program.ask('POST', `${url}/deploy?wait=60`)).toMatchObject({ status: 'DEPLOYMENT_ERROR' });
      const { results } = await program.ask('GET', `${url}/logs`);
      expect(results.at(-1).error.user_log_message).toContain('replace the kubeconfig');
      await replaceKubeconfig(clusterId, cluster.kubeconfig);
      expect(await program.ask('POST', `${url}/deploy?wait=60`)).toMatchObject({ status: 'DEPLOYED' });
    },
  );
});
