import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, mkdir, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { ClientConfig } from 'pg';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createServer } from '#kernel/node-http.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { urlOf } from '#test/crash/harness/machine.ts';
import { cloneDatabase } from '#test/harness/database.ts';
import { hasCondition, KubernetesApi, type KubernetesObject } from '#test/harness/kubernetes/api.ts';
import { findKubernetesPrograms } from '#test/harness/kubernetes/programs.ts';
import { importImage } from '#test/harness/kubernetes-cluster.ts';
import { addBase, addProgramOfTree, imageConfig } from '#test/harness/own-image.ts';
import { startRegistry, type TestRegistry } from '#test/harness/registry.ts';
import { relay } from '#test/harness/relay.ts';

const run = promisify(execFile);
const cluster = inject('kubernetes');
const NAMESPACE = `plane-${process.pid}`;
const IMAGE = 'quarterdeck-of-the-tree';
const RELEASE = 'quarterdeck';

/** Address of this machine for pods. */
const gateway = cluster.nodeAddress.replace(/\d+$/, '1');
/** Milliseconds that a command in a pod may take: on a busy machine the program takes some seconds to start. */
const EXEC_MS = 60_000;

let api: KubernetesApi;
let urlInPods: (config: ClientConfig) => string;
let folder: string;
let registry: TestRegistry;
let registryUrl: string;
let url: string;
let token: string;
let environment: string | undefined;
let container: string;
const ends: (() => Promise<unknown>)[] = [];

const helm = (...args: string[]) =>
  run(
    findKubernetesPrograms(process.env)!.helm,
    ['--kubeconfig', path.join(folder, 'kubeconfig'), '--namespace', NAMESPACE, ...args],
    { env: { HOME: folder, PATH: process.env['PATH'] } },
  );

/** Installs the chart, or changes the release, and waits until all pods are ready. */
async function apply(change: object = {}): Promise<string> {
  await writeFile(path.join(folder, 'change.json'), JSON.stringify(change));
  const values = ['values.json', 'change.json'].flatMap((file) => ['--values', path.join(folder, file)]);
  const args = ['upgrade', '--install', RELEASE, 'deploy/chart', ...values, '--wait', '--timeout', '240s'];
  return (await helm(...args, '--create-namespace')).stdout;
}

const podsOf = async (role: string): Promise<string[]> => {
  const pods = await api.list<KubernetesObject & { metadata: { deletionTimestamp?: string } }>(
    `/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3D${role}`,
  );
  return pods
    .filter((pod) => hasCondition(pod, 'Ready') && pod.metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name);
};

async function ask(method: 'GET' | 'POST' | 'DELETE', where: string, body?: object): Promise<any> {
  const answer = await request(`${url}${where}`, {
    method,
    headers: { authorization: `Token ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    body: body ? JSON.stringify(body) : null,
    reset: true,
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`${method} ${where}: ${answer.statusCode} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

const state = async (): Promise<string> => (await ask('GET', `/container/${container}/status`)).state;

/** Returns what the deployed container answers at the address of its Service. */
async function served(): Promise<string> {
  const collection = `/api/v1/namespaces/qd-${environment}/services`;
  const [{ spec }] = (await api.list<{ spec: { clusterIP: string } }>(collection)) as [{ spec: { clusterIP: string } }];
  return (await request(`http://${spec.clusterIP}:8080/`, { reset: true })).body.text();
}

/** Sends requests without a pause, on kept and on new connections. Returns what ends it and reports. */
function load(where: string) {
  const failures: string[] = [];
  const kept = new Agent();
  let sent = 0;
  let isEnding = false;
  const line = async (reset: boolean) => {
    while (!isEnding) {
      sent++;
      await request(`${url}${where}`, {
        headers: { authorization: `Token ${token}` },
        ...(reset ? { reset } : { dispatcher: kept }),
      }).then(
        async ({ statusCode, body }) => {
          const text = await body.text();
          if (statusCode !== 200) failures.push(`${statusCode} ${text}`);
        },
        (error: Error) => failures.push(error.message),
      );
    }
  };
  const lines = [true, true, false, false].map(line);
  return async () => {
    isEnding = true;
    await Promise.all(lines);
    await kept.close();
    return { sent, failures };
  };
}

/** Returns the lines of a pod's log that report errors. */
const errorsOf = async (pod: string): Promise<string[]> =>
  (await api.text(`/api/v1/namespaces/${NAMESPACE}/pods/${pod}/log`))
    .split('\n')
    .filter((line) => /"level":"?(50|60|error|fatal)/.test(line));

/** Runs a command of the program in a pod. */
const program = (pod: string, ...args: string[]) => api.exec(NAMESPACE, pod, ['node', 'src/main.ts', ...args], EXEC_MS);

/** Runs JavaScript in a pod. */
async function node(pod: string, script: string): Promise<void> {
  const output = await api.exec(NAMESPACE, pod, ['node', '--eval', script], EXEC_MS);
  expect(output).toMatchObject({ status: 'Success' });
}

/** Holds one file for pods, which answers what was PUT; returns its URL. */
async function holdFile(): Promise<string> {
  let held = Buffer.alloc(0);
  const server = createServer((call, answer) => {
    if (call.method === 'GET') return void answer.end(held);
    void buffer(call).then((body) => {
      held = body;
      answer.end();
    });
  }).listen(0, gateway);
  await once(server, 'listening');
  ends.push(async () => void server.close());
  return `http://${gateway}:${(server.address() as AddressInfo).port}/`;
}

/** Processes of this machine that run in a pod. */
async function processesOf(pod: string): Promise<number[]> {
  const found = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    if (environment.split('\0').includes(`HOSTNAME=${pod}`)) found.push(Number(pid));
  }
  return found;
}

describe.skipIf(cluster.directory === null)('the control plane on Kubernetes', () => {
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'qd-chart-'));
    await writeFile(path.join(folder, 'kubeconfig'), cluster.kubeconfig, { mode: 0o600 });
    api = new KubernetesApi(cluster.kubeconfig);
    const image = importImage(
      cluster,
      `${IMAGE}:1`,
      async (archive) => {
        await addBase(archive);
        await addProgramOfTree(archive);
      },
      imageConfig(),
    );
    const database = await cloneDatabase(inject('postgres'), 'template0');
    const { host, port } = database.config;
    const postgres = await relay(gateway, { path: `${host}/.s.PGSQL.${port}` });
    urlInPods = (config) => urlOf({ ...config, host: gateway, port: postgres.port });
    ends.push(
      () => postgres.close(),
      () => database.drop(),
    );
    registry = await startRegistry();
    const images = await relay(gateway, { host: '127.0.0.1', port: Number(registry.host.split(':')[1]) });
    ends.unshift(
      () => images.close(),
      () => registry.stop(),
    );
    registryUrl = `http://${gateway}:${images.port}`;
    const hosts = path.join(cluster.directory!, 'registries', `${gateway}:${images.port}`);
    await mkdir(hosts, { recursive: true });
    await writeFile(path.join(hosts, 'hosts.toml'), `server = "${registryUrl}"\n[host."${registryUrl}"]\n`);
    const busybox = { content: await readFile(findProgram('busybox')!), mode: 0o755 };
    for (const tag of ['1', '2'])
      await registry.pushImage('shop', tag, {
        files: { 'bin/busybox': busybox, 'index.html': `release ${tag}` },
        config: { Cmd: ['/bin/busybox', 'httpd', '-f', '-p', '8080'] },
      });
    const values = {
      image: { repository: IMAGE, tag: '1' },
      database: { url: urlInPods(database.config) },
      settings: { QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: `${gateway}/32`, QUARTERDECK_RATE_LIMIT_PER_HOUR: 0 },
    };
    await writeFile(path.join(folder, 'values.json'), JSON.stringify(values), { mode: 0o600 });
    await image;
  }, 120_000);
  afterAll(async () => {
    for (const end of ends) await end();
    for (const name of [NAMESPACE, ...(environment ? [`qd-${environment}`] : [])])
      await api.delete(`/api/v1/namespaces/${name}`);
    await api.close();
    await rm(folder, { recursive: true });
  }, 60_000);

  test('is checked by helm: wrong values are refused with what would be right', { timeout: 60_000 }, async () => {
    const refusal = async (...values: string[]): Promise<string> => {
      const args = ['template', RELEASE, 'deploy/chart', '--kube-version', '1.34.1'];
      const sets = values.flatMap((value) => ['--set', value]);
      return helm(...args, ...sets).then(
        () => '',
        ({ stderr }: { stderr: string }) => stderr,
      );
    };
    await helm('lint', 'deploy/chart', '--strict', '--set', 'database.existingSecret=it');
    expect(await refusal()).toContain('set url or existingSecret to a PostgreSQL of your own, or trial.enabled=true');
    const database = 'database.existingSecret=it';
    expect(await refusal(database, 'database.trial.enabled=true')).toContain('a trial has a PostgreSQL of its own');
    expect(await refusal(database, 'api.replica=2')).toContain("additional properties 'replica' not allowed");
    expect(await refusal(database, 'terminationGracePeriodSeconds=30')).toContain('got 30, want 40');
    expect(await refusal(database, 'vault.key=short')).toContain('/vault/key');
    expect(await refusal(database, 'settings.QUARTERDECK_ROLE=all')).toContain('is set by the chart itself');
    expect(await refusal(database, 'ingress.enabled=true')).toContain('such as quarterdeck.example.com');
    const all = [
      'ingress.enabled=true',
      'ingress.host=a.example',
      'serviceMonitor.enabled=true',
      'httpRoute.enabled=true',
    ];
    expect(await refusal(database, ...all, 'httpRoute.host=b.example', 'httpRoute.parentRefs[0].name=public')).toBe('');
  });

  test('is installed by its chart, and its notes lead to a token', { timeout: 260_000 }, async () => {
    const notes = await apply();
    expect(await podsOf('api')).toHaveLength(2);
    expect(await podsOf('worker')).toHaveLength(2);
    const [, command] = /-- \\\n\s+(node src\/main\.ts token create .*)\n/.exec(notes)!;
    const [pod] = await podsOf('api');
    const made = await api.exec(NAMESPACE, pod!, command!.split(' '), EXEC_MS);
    expect(made).toMatchObject({ status: 'Success' });
    token = made.stdout.trim();
    const service = await api.get<{ spec: { clusterIP: string } }>(
      `/api/v1/namespaces/${NAMESPACE}/services/${RELEASE}`,
    );
    url = `http://${service.spec.clusterIP}`;
    expect((await ask('GET', '/organization')).results).toHaveLength(1);
  });

  test('deploys to the cluster that it runs in, with the account of its pods', { timeout: 400_000 }, async () => {
    const [organization] = (await ask('GET', '/organization')).results;
    const clusters = async () => (await ask('GET', `/organization/${organization.id}/cluster`)).results;
    await expect.poll(clusters, { timeout: 180_000 }).toMatchObject([{ name: 'local', status: 'DEPLOYED' }]);
    const [{ id: clusterId }] = await clusters();
    const project = await ask('POST', `/organization/${organization.id}/project`, { name: 'shop' });
    const made = { name: 'shop', cluster_id: clusterId };
    environment = (await ask('POST', `/project/${project.id}/environment`, made)).id;
    const access = { name: 'images', kind: 'GENERIC_CR', url: registryUrl, config: {} };
    const { id: registryId } = await ask('POST', `/organization/${organization.id}/containerRegistry`, access);
    container = (
      await ask('POST', `/environment/${environment}/container`, {
        name: 'shop',
        registry_id: registryId,
        image_name: 'shop',
        tag: '1',
        cpu: 10,
        memory: 32,
        ports: [{ internal_port: 8080, publicly_accessible: true, protocol: 'HTTP' }],
        healthchecks: {
          readiness_probe: { type: { http: { port: 8080, path: '/' } }, initial_delay_seconds: 0, period_seconds: 1 },
        },
      })
    ).id;
    await ask('POST', `/container/${container}/deploy`);
    await expect.poll(state, { timeout: 180_000 }).toBe('DEPLOYED');
    await expect.poll(served).toBe('release 1');
  });

  test('serves the states of Terraform at the URL that its workers hand out', { timeout: 60_000 }, async () => {
    const [worker] = await podsOf('worker');
    const script = `fetch(process.env.QUARTERDECK_TERRAFORM_STATE_URL + '/terraform-state/a/b').then(({ status }) => console.log(status))`;
    expect(await api.exec(NAMESPACE, worker!, ['node', '--eval', script], EXEC_MS)).toMatchObject({
      status: 'Success',
      stdout: expect.stringContaining('401'),
    });
  });

  test(
    'is upgraded under load: no request fails, and a deployment meanwhile is carried out',
    { timeout: 460_000 },
    async () => {
      const before = await podsOf('api');
      for (const pod of [...before, ...(await podsOf('worker'))]) expect(await errorsOf(pod), pod).toEqual([]);
      const endLoad = load(`/container/${container}`);
      const upgrade = apply({ settings: { QUARTERDECK_WORKER_SLOTS: 4 } });
      await ask('POST', `/container/${container}/deploy`, { image_tag: '2' });
      await upgrade;
      await expect.poll(state, { timeout: 180_000 }).toBe('DEPLOYED');
      const { sent, failures } = await endLoad();
      expect(failures).toEqual([]);
      expect(sent).toBeGreaterThan(100);
      await expect.poll(served).toBe('release 2');
      expect((await podsOf('api')).filter((pod) => before.includes(pod))).toEqual([]);
    },
  );

  test('goes on when one pod of each role is killed', { timeout: 300_000 }, async () => {
    const victims = [(await podsOf('api'))[0]!, (await podsOf('worker'))[0]!];
    const processes = (await Promise.all(victims.map(processesOf))).flat();
    expect(processes.length).toBeGreaterThanOrEqual(2);
    await ask('POST', `/container/${container}/deploy`, { image_tag: '1' });
    for (const pid of processes) process.kill(pid, 'SIGKILL');
    await expect.poll(() => state().catch(() => 'refused'), { timeout: 240_000 }).toBe('DEPLOYED');
    await expect.poll(served).toBe('release 1');
  });

  test('is restored from a backup, in the pod for maintenance', { timeout: 300_000 }, async () => {
    const [worker] = await podsOf('worker');
    expect(await program(worker!, 'backup', '--output', '/tmp/it.backup')).toMatchObject({ status: 'Success' });
    const file = await holdFile();
    await node(worker!, `fetch('${file}', { method: 'PUT', body: fs.readFileSync('/tmp/it.backup') })`);
    const database = await cloneDatabase(inject('postgres'), 'template0');
    ends.push(() => database.drop());
    await apply({ maintenance: true, database: { url: urlInPods(database.config) } });
    const pods = await podsOf('maintenance');
    expect(pods).toHaveLength(1);
    await node(
      pods[0]!,
      `fetch('${file}').then((answer) => answer.bytes()).then((bytes) => fs.writeFileSync('/tmp/it.backup', bytes))`,
    );
    const restored = await program(pods[0]!, 'restore', '/tmp/it.backup');
    expect(restored.stdout, restored.stderr).toContain('Restored ');
    expect(await program(pods[0]!, 'restore', '--accept')).toMatchObject({ status: 'Success' });
    expect((await program(pods[0]!, 'token', 'list')).stdout).toContain('admin');
    expect(await podsOf('api')).toEqual([]);
  });

  test(
    'leaves the key of the vault when it is uninstalled, and what it has deployed',
    { timeout: 180_000 },
    async () => {
      await helm('uninstall', RELEASE, '--wait', '--timeout', '120s');
      const left = async (collection: string) =>
        (await api.list(collection)).map(({ metadata }) => metadata.name).filter((name) => name.includes(RELEASE));
      const namespace = `namespaces/${NAMESPACE}`;
      expect(await left(`/api/v1/${namespace}/secrets`)).toEqual([`${RELEASE}-vault`]);
      for (const collection of [
        `/apis/apps/v1/${namespace}/deployments`,
        `/api/v1/${namespace}/services`,
        `/api/v1/${namespace}/serviceaccounts`,
        `/apis/networking.k8s.io/v1/${namespace}/networkpolicies`,
        `/apis/policy/v1/${namespace}/poddisruptionbudgets`,
        '/apis/rbac.authorization.k8s.io/v1/clusterroles',
        '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
      ])
        expect(await left(collection), collection).toEqual([]);
      await expect.poll(served).toBe('release 1');
    },
  );
});
