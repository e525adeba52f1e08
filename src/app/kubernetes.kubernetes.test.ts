import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { rbacManifest } from '#app/kubernetes.ts';
import { leftoversOf, type openCluster } from '#runtimes/kubernetes/testing.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { makeAccount, type ManifestObject } from '#test/harness/kubernetes-account.ts';
import { KubernetesProgram } from '#test/harness/kubernetes-program.ts';
import type { Program } from '#test/harness/program.ts';

const cluster = inject('kubernetes');
const ACCOUNT = `account-${randomUUID().slice(0, 8)}`;

let place: KubernetesProgram;
let program: Program;
let organization: string;
let environment: string;
let clusterId: string;
let registryId: string;
let administrator: ReturnType<typeof openCluster>['cluster'];

const connectCluster = async (name: string, kubeconfig: string): Promise<string> => {
  const id = await place.makeCluster(name);
  await place.useKubeconfig(id, kubeconfig);
  return id;
};

const warningsOf = async (of: string): Promise<unknown[]> => (await program.ask('GET', `${of}/status`)).warnings ?? [];

/** Changes a Deployment as `kubectl edit` does; expects that the status tells it, and that the plan puts it back. */
async function changeByHand(of: string, object: string): Promise<void> {
  const name = object.split(' ')[1]!;
  const path = `/apis/apps/v1/namespaces/qd-${environment}/deployments/${name}`;
  const call = { type: 'application/merge-patch+json', query: { fieldManager: 'kubectl-edit' } };
  await administrator.connection.call('PATCH', path, { ...call, body: { spec: { replicas: 0 } } });
  const message = expect.stringContaining(`spec.replicas of ${object} was changed by kubectl-edit`);
  await expect
    .poll(() => warningsOf(of), { timeout: 40_000 })
    .toEqual(
      expect.arrayContaining([
        expect.objectContaining({ code: 'INSTANCES_NOT_READY' }),
        expect.objectContaining({ code: 'CHANGED_IN_CLUSTER', message }),
      ]),
    );
  const { stages } = await program.ask('GET', `${of}/deploymentPlan`);
  const { objects } = stages[0].services[0].changes;
  const fields = [{ path: 'spec.replicas', from: 0, to: 1 }];
  expect(objects).toEqual([{ object, change: 'CHANGED', fields }]);
}

beforeAll(async () => {
  place = await KubernetesProgram.start(cluster);
  ({ program, organization, administrator } = place);
  const busybox = { content: await readFile(findProgram('busybox')!), mode: 0o755 };
  const Cmd = [
    '/bin/busybox',
    'sh',
    '-c',
    'trap "echo ending; exit 0" TERM; echo serving; cd /; /bin/busybox httpd -f -p 8080 & wait',
  ];
  for (const tag of ['1', '2'])
    await place.registry.pushImage('shop', tag, {
      files: { 'bin/busybox': busybox, 'index.html': `release ${tag}` },
      config: { Cmd },
    });
  registryId = await place.makeImageRegistry();
}, 120_000);

afterAll(() => place.close(), 120_000);

describe.skipIf(cluster.directory === null)('a Kubernetes cluster', () => {
  test(
    'is connected with the printed account, and says which rights another account lacks',
    { timeout: 120_000 },
    async () => {
      const objects = rbacManifest(ACCOUNT) as ManifestObject[];
      const kubeconfig = await makeAccount(cluster, administrator, objects, ACCOUNT);
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
      const other = await connectCluster('poor', await makeAccount(cluster, administrator, renamed, poor));
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
      environment = await place.makeEnvironment(clusterId);
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
      const gateway = place.gateway();
      const { results: links } = await program.ask('GET', `${of}/link`);
      const { hostname } = new URL(links[0].url);
      const served = async () => (await gateway.get(hostname, '/')).body;
      expect(await served()).toBe('release 1');
      const states = async () => (await program.ask('GET', `${of}/status`)).state;
      expect(await states()).toBe('DEPLOYED');
      const { results: lines } = await program.ask('GET', `${of}/log`);
      expect(lines.map(({ message }: { message: string }) => message)).toContain('serving');

      await act('restart-service');
      const { pod_name } = lines[0];
      const former = async () => (await program.ask('GET', `${of}/log?pod_name=${pod_name}`)).results;
      const line = (message: string) => expect.objectContaining({ message, pod_name });
      await expect.poll(former, { timeout: 40_000 }).toEqual([line('serving'), line('ending')]);
      await act('deploy', { image_tag: '2' });
      expect(await served()).toBe('release 2');
      await act('deploy', { image_tag: '1' });
      expect(await served()).toBe('release 1');
      const identity = { serviceId: container.id } as Parameters<typeof leftoversOf>[1];
      await changeByHand(
        of,
        (await leftoversOf(administrator, identity)).find((name) => name.startsWith('Deployment'))!,
      );
      await act('deploy');
      await expect.poll(() => warningsOf(of)).toEqual([]);
      await act('stop');
      expect((await gateway.get(hostname, '/')).status).toBe(503);
      await act('deploy');
      expect(await served()).toBe('release 1');

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
    await expect.poll(() => program.send('GET', `/environment/${environment}`).then(({ status }) => status)).toBe(404);
    await program.keepHouse();
    await expect.poll(namespaces).toEqual([]);
  });

  test(
    'whose kubeconfig no longer works is told so, and works again once that is replaced',
    { timeout: 120_000 },
    async () => {
      const url = `/organization/${organization}/cluster/${clusterId}`;
      const revoked = parse(cluster.kubeconfig) as { users: { user: object }[] };
      revoked.users[0]!.user = { token: 'revoked' };
      await place.useKubeconfig(clusterId, JSON.stringify(revoked));
      expect(await program.ask('POST', `${url}/deploy?wait=60`)).toMatchObject({ status: 'DEPLOYMENT_ERROR' });
      const { results } = await program.ask('GET', `${url}/logs`);
      expect(results.at(-1).error.user_log_message).toContain('replace the kubeconfig');
      await place.useKubeconfig(clusterId);
      expect(await program.ask('POST', `${url}/deploy?wait=60`)).toMatchObject({ status: 'DEPLOYED' });
    },
  );
});
