import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { leftoversOf, type openCluster } from '#runtimes/kubernetes/testing.ts';
import { findOrStartEngine, stopEngine } from '#test/harness/docker-engine.ts';
import { addBusybox, BUSYBOX_IMAGE, importImage } from '#test/harness/docker-images.ts';
import { KubernetesProgram } from '#test/harness/kubernetes-program.ts';
import type { Program } from '#test/harness/program.ts';
import type { TestRegistry } from '#test/harness/registry.ts';
import type { TestRepository } from '#test/harness/repository.ts';

const cluster = inject('kubernetes');
/** Engine that builds; null where there is none, or where the nodes of the cluster could not pull from a registry of the tests. */
const engine =
  cluster.directory === null
    ? null
    : await findOrStartEngine(process.env).catch((error: Error) => {
        console.warn(`Builds for Kubernetes are not tried: ${error.message}`);
        return null;
      });

const DOCKERFILE = `FROM ${BUSYBOX_IMAGE}
COPY index.html /index.html
CMD ["sh", "-c", "trap 'exit 0' TERM; cd /; httpd -f -p 8080 & wait"]
`;

let place: KubernetesProgram;
let program: Program;
let registry: TestRegistry;
let repository: TestRepository;
let administrator: ReturnType<typeof openCluster>['cluster'];
let organization: string;
let clusterId: string;
let environment: string;
let application: string;
let hostname: string;

const commit = (text: string) => repository.commit({ Dockerfile: DOCKERFILE, 'index.html': text });
const deploy = (body?: object) => program.ask('POST', `/application/${application}/deploy?wait=100`, body);
const clusterUrl = () => `/organization/${organization}/cluster/${clusterId}`;
const served = async () => (await place.gateway().get(hostname, '/')).body;

/** Returns the names of the steps of the newest deployment. */
async function lastSteps(): Promise<string[]> {
  const { db } = program.running.base.platform;
  const rows = await db
    .selectFrom('deployment_step')
    .innerJoin('deployment', 'deployment.id', 'deployment_step.deployment_id')
    .select(['deployment_step.name', 'deployment.number'])
    .where('deployment_step.service_id', '=', application)
    .orderBy('deployment.number', 'desc')
    .execute();
  return rows.filter(({ number }) => number === rows[0]!.number).map(({ name }) => name);
}

const askRegistry = (route: string, method = 'GET') =>
  fetch(`${registry.url}/v2/team/quarterdeck-${application}/${route}`, {
    method,
    headers: { authorization: `Basic ${Buffer.from('ada:secret').toString('base64')}` },
  });
const tags = async () => ((await (await askRegistry('tags/list')).json()) as { tags?: string[] | null }).tags ?? [];

/** Returns the image of the release that serves. */
async function releasedImage(): Promise<string> {
  const { db } = program.running.base.platform;
  const { image } = await db
    .selectFrom('release')
    .innerJoin('service', 'service.release_id', 'release.id')
    .select('release.image')
    .where('service.id', '=', application)
    .executeTakeFirstOrThrow();
  return image!;
}

beforeAll(async () => {
  if (engine === null) return;
  const docker = new Docker({ socketPath: engine.socketPath });
  await importImage(docker, BUSYBOX_IMAGE, addBusybox);
  const settings = { DOCKER_HOST: `unix://${engine.socketPath}` };
  place = await KubernetesProgram.start(cluster, { settings, registry: { auth: 'htpasswd' } });
  ({ program, registry, organization, administrator } = place);
  repository = program.makeRepository();
  clusterId = await place.makeCluster();
  await place.useKubeconfig(clusterId);
  await place.deployCluster(clusterId);
  environment = await place.makeEnvironment(clusterId);
}, 120_000);

afterAll(async () => {
  if (engine === null) return;
  await place.close();
  await stopEngine(engine);
}, 120_000);

describe.skipIf(engine === null)('an application that is built from git, on Kubernetes', () => {
  test('is refused with the remedy while the cluster has no registry', async () => {
    commit('release 1');
    const made = await program.ask('POST', `/environment/${environment}/application`, {
      name: 'shop',
      git_repository: { url: repository.url },
      cpu: 100,
      memory: 64,
      ports: [{ internal_port: 8080, publicly_accessible: true, protocol: 'HTTP' }],
      healthchecks: {
        readiness_probe: { type: { http: { port: 8080, path: '/' } }, initial_delay_seconds: 0, period_seconds: 1 },
      },
    });
    application = made.id;
    const { status, text } = await program.send('POST', `/application/${application}/deploy`);
    expect([status, JSON.parse(text).message]).toEqual([400, expect.stringContaining('advanced setting registry.id')]);
  });

  test('is built, pushed, pulled by its digest, and answers', { timeout: 120_000 }, async () => {
    const ofRegistry = {
      name: 'images',
      kind: 'GENERIC_CR',
      url: `${registry.url}/team`,
      config: registry.credentials,
    };
    const { id } = await program.ask('POST', `/organization/${organization}/containerRegistry`, ofRegistry);
    await program.ask('PUT', `${clusterUrl()}/advancedSettings`, { 'registry.id': id });
    await program.ask('POST', `${clusterUrl()}/deploy?wait=60`);
    await deploy();
    const { results: links } = await program.ask('GET', `/application/${application}/link`);
    hostname = new URL(links[0].url).hostname;
    expect(await served()).toBe('release 1');
    expect(await lastSteps()).toContain('BUILD');
    expect(await tags()).toHaveLength(1);
  });

  test('is not built a second time without a change, and again with a new commit', { timeout: 120_000 }, async () => {
    await deploy();
    expect(await lastSteps()).toEqual(['DEPLOYMENT']);
    commit('release 2');
    await deploy();
    expect(await served()).toBe('release 2');
    expect(await tags()).toHaveLength(2);
  });

  test('is built again when its registry has lost the image', { timeout: 120_000 }, async () => {
    const [, digest] = (await releasedImage()).split('@');
    expect((await askRegistry(`manifests/${digest}`, 'DELETE')).status).toBe(202);
    await deploy();
    expect(await lastSteps()).toContain('BUILD');
    expect(await tags()).toHaveLength(2);
  });

  test('is rolled back without a build', { timeout: 120_000 }, async () => {
    const { results } = await program.ask('GET', `/application/${application}/deploymentHistoryV2`);
    const first = results.at(-1).identifier.execution_id;
    await program.ask('POST', `/application/${application}/rollback?wait=100`, { execution_id: first });
    expect(await lastSteps()).toEqual(['DEPLOYMENT']);
    expect(await served()).toBe('release 1');
  });

  test('leaves neither objects nor images when it is deleted', { timeout: 120_000 }, async () => {
    await program.ask('DELETE', `/application/${application}`);
    const identity = { serviceId: application } as Parameters<typeof leftoversOf>[1];
    await expect.poll(() => leftoversOf(administrator, identity), { timeout: 60_000 }).toEqual([]);
    await program.keepHouse();
    expect(await tags()).toEqual([]);
  });
});
