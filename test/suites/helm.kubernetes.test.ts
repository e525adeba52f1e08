import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { rbacManifest } from '#app/kubernetes.ts';
import { find, list } from '#runtimes/kubernetes/cluster.ts';
import { WEB_CHART, findTestHelm } from '#runtimes/kubernetes/helm/testing.ts';
import type { ConfigMap, Pod } from '#runtimes/kubernetes/kinds.ts';
import type { openCluster } from '#runtimes/kubernetes/testing.ts';
import { makeAccount, type ManifestObject } from '#test/harness/kubernetes-account.ts';
import { KubernetesProgram } from '#test/harness/kubernetes-program.ts';
import type { Program } from '#test/harness/program.ts';
import { packChart, type TestRegistry } from '#test/harness/registry.ts';

const cluster = inject('kubernetes');
const ACCOUNT = `helm-${randomUUID().slice(0, 8)}`;
const SECRET = `secret-${randomUUID()}`;

let place: KubernetesProgram;
let program: Program;
let administrator: ReturnType<typeof openCluster>['cluster'];
let server: Server;
let registry: TestRegistry;
let organization: string;
let environment: string;
/** Archives that the Helm repository serves, by version. */
const archives = new Map<string, Buffer>();

const pack = (version: string, change: Record<string, string> = {}) =>
  packChart('web', version, {
    files: { ...WEB_CHART, ...change, 'Chart.yaml': `apiVersion: v2\nname: web\nversion: ${version}\n` },
  });

/** Serves the Helm repository; its index names no digests, as those of some repositories. */
async function serveCharts(): Promise<string> {
  server = createServer((request, response) => {
    const archive = archives.get(/\/web-(.*)\.tgz$/.exec(request.url ?? '')?.[1] ?? '');
    const versions = [...archives.keys()].map((version) => ({ version, urls: [`web-${version}.tgz`] }));
    response.end(archive ?? JSON.stringify({ entries: { web: versions } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function connectCluster(): Promise<string> {
  const objects = JSON.parse(
    JSON.stringify(rbacManifest(ACCOUNT)).replaceAll('"quarterdeck"', `"${ACCOUNT}"`),
  ) as ManifestObject[];
  const kubeconfig = await makeAccount(cluster, administrator, objects, ACCOUNT);
  const id = await place.makeCluster();
  await place.useKubeconfig(id, kubeconfig);
  expect(await place.deployCluster(id)).toMatchObject({ status: 'DEPLOYED' });
  return id;
}

const makeRepository = async (kind: string, url: string): Promise<string> => {
  const body = { name: kind, kind, url, skip_tls_verification: false, config: {} };
  return (await program.ask('POST', `/organization/${organization}/helmRepository`, body)).id;
};

const chartOf = (repository: string, version: string) => ({
  helm_repository: { repository, chart_name: 'web', chart_version: version },
});

const makeService = (body: object) =>
  program.ask('POST', `/environment/${environment}/helm`, { name: `web-${randomUUID().slice(0, 8)}`, ...body });

const valuesOf = async (hostname: string) =>
  (await find<ConfigMap>(administrator, 'ConfigMap', `qd-${environment}`, `${hostname}-config`))?.data;

const hostnameOf = ({ id }: { id: string }) => `helm-z${id.slice(0, 8)}`;
const stateOf = async (id: string) => (await program.ask('GET', `/helm/${id}/status`)).state;

/** Returns the log of the last execution in the environment. */
const lastLog = async () => JSON.stringify(await program.ask('GET', `/environment/${environment}/logs`));

beforeAll(async () => {
  place = await KubernetesProgram.start(cluster, { settings: { QUARTERDECK_HELM: findTestHelm() } });
  ({ program, registry, organization, administrator } = place);
  environment = await place.makeEnvironment(await connectCluster(), 'charts');
  await program.ask('POST', `/environment/${environment}/secret`, { key: 'TOKEN', value: SECRET });
  for (const version of ['1.0.0', '1.1.0']) archives.set(version, await pack(version));
}, 120_000);

afterAll(async () => {
  await place.close();
  server?.close();
}, 120_000);

describe('a Helm service on Kubernetes', () => {
  test(
    'takes its chart from a Helm repository and values in every form, and its secrets are seen nowhere',
    { timeout: 180_000 },
    async () => {
      const repository = await makeRepository('HTTPS', await serveCharts());
      const service = await makeService({
        source: chartOf(repository, '1.0.0'),
        timeout_sec: 60,
        values_override: {
          set: [['servers[1].port', '8080']],
          set_string: [['text', '{{TOKEN}}']],
          set_json: [['annotations', '{"a": [1, "{{TOKEN}}"]}']],
          file: { raw: { values: [{ name: 'values.yaml', content: 'text: raw\nservers: [{port: 3}, {port: 4}]\n' }] } },
        },
        ports: [{ name: 'web', internal_port: 80, service_selectors: [{ key: 'part', value: 'web' }] }],
      });
      await program.ask('POST', `/helm/${service.id}/deploy?wait=100`);
      expect([await stateOf(service.id), await lastLog()]).toEqual(['DEPLOYED', expect.not.stringContaining(SECRET)]);
      expect(await valuesOf(hostnameOf(service))).toEqual({
        text: SECRET,
        servers: '[{"port":3},{"port":8080}]',
      });
      const { results } = await program.ask('GET', `/helm/${service.id}/listServices`);
      expect(results).toMatchObject([{ metadata: { name: `${hostnameOf(service)}-web` } }]);
      const gateway = place.gateway();
      const { results: links } = await program.ask('GET', `/helm/${service.id}/link`);
      expect((await gateway.get(new URL(links[0].url).hostname, '/')).body).toBe(SECRET);

      // An upgrade that fails leaves the release before, and says why.
      archives.set('1.2.0', await pack('1.2.0', { 'values.yaml': 'isBroken: true\nreplicas: 1\ndelay: 0\n' }));
      await program.ask('PUT', `/helm/${service.id}`, { name: service.name, timeout_sec: 8, values_override: {} });
      await program.ask('POST', `/helm/${service.id}/deploy?wait=100`, { chart_version: '1.2.0' });
      expect(await stateOf(service.id)).toBe('DEPLOYMENT_ERROR');
      expect(await lastLog()).toMatch(
        /was not ready within 8 s \(timeout_sec\): it ended with status 3.*no configuration/,
      );
      expect((await valuesOf(hostnameOf(service)))?.['text']).toBe(SECRET);

      await program.ask('PUT', `/helm/${service.id}`, { name: service.name, timeout_sec: 60 });
      await program.ask('POST', `/helm/${service.id}/deploy?wait=100`, { chart_version: '1.1.0' });
      expect((await valuesOf(hostnameOf(service)))?.['text']).toBe('plain');
      await program.ask('PUT', `/helm/${service.id}`, {
        name: service.name,
        values_override: { set: [['text', 'new']] },
      });
      await program.ask('POST', `/helm/${service.id}/deploy?wait=100&forceEvent=DIFF`);
      expect(await lastLog()).toMatch(/-config is changed.*- {3}text: plain.*\+ {3}text: new/);
      expect((await valuesOf(hostnameOf(service)))?.['text']).toBe('plain');

      // The archive of that version is another one since: a rollback refuses it.
      const { results: history } = await program.ask('GET', `/helm/${service.id}/deploymentHistoryV2`);
      const first = history.at(-1).identifier.execution_id;
      const back = () => program.ask('POST', `/helm/${service.id}/rollback?wait=100`, { execution_id: first });
      await back();
      expect((await valuesOf(hostnameOf(service)))?.['text']).toBe(SECRET);
      archives.set('1.0.0', await pack('1.0.0', { 'other.txt': 'other' }));
      await back();
      expect(await lastLog()).toContain('The Helm repository has another archive of web 1.0.0');

      await program.ask('POST', `/helm/${service.id}/stop?wait=60`);
      const pods = await list<Pod>(administrator, 'Pod', `qd-${environment}`, `app=${hostnameOf(service)}-web`);
      expect(pods.filter(({ status }) => status?.phase === 'Running')).toEqual([]);
      await program.ask('DELETE', `/helm/${service.id}`);
      await expect.poll(() => valuesOf(hostnameOf(service)), { timeout: 60_000 }).toBeUndefined();
    },
  );

  test('takes its chart and its values from git, and its chart from a registry', { timeout: 120_000 }, async () => {
    const [chart, values] = [program.makeRepository(), program.makeRepository()];
    chart.commit(Object.fromEntries(Object.entries(WEB_CHART).map(([file, text]) => [`charts/web/${file}`, text])));
    values.commit({ 'live.yaml': 'text: "of {{TOKEN}}"\n' });
    const inGit = await makeService({
      source: { git_repository: { url: chart.url, branch: 'main', root_path: '/charts/web' } },
      values_override: { file: { git: { git_repository: { url: values.url, branch: 'main' }, paths: ['live.yaml'] } } },
    });
    await program.ask('POST', `/helm/${inGit.id}/deploy?wait=100`);
    expect(await valuesOf(hostnameOf(inGit))).toMatchObject({ text: `of ${SECRET}` });

    await registry.pushChart('charts/web', '2.0.0', { files: WEB_CHART });
    const repository = await makeRepository('OCI_GENERIC_CR', `oci://${registry.host}/charts`);
    const inRegistry = await makeService({ source: chartOf(repository, '2.0.0') });
    await program.ask('POST', `/helm/${inRegistry.id}/deploy?wait=100`);
    expect(await valuesOf(hostnameOf(inRegistry))).toMatchObject({ text: 'plain' });
    await program.ask('DELETE', `/environment/${environment}`);
    await expect
      .poll(() => program.send('GET', `/environment/${environment}`).then(({ status }) => status), { timeout: 60_000 })
      .toBe(404);
    await program.keepHouse();
    await expect
      .poll(() => find(administrator, 'Namespace', undefined, `qd-${environment}`), { timeout: 30_000 })
      .toBeNull();
  });
});
