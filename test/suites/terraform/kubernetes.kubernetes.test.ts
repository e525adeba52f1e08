import type { Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { leftoversOf, makeVolumes, openCluster, removeMade } from '#runtimes/kubernetes/testing.ts';
import { HAS_TERRAFORM } from '#services/kinds/terraform/testing.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import type { ServiceProcess } from '#test/crash/harness/process.ts';
import { findOrStartEngine, stopEngine } from '#test/harness/docker-engine.ts';
import { ensureTerraformImage, TERRAFORM_IMAGE } from '#test/harness/docker-images.ts';
import { letPull } from '#test/harness/kubernetes-registry.ts';
import { startRegistry, type TestRegistry } from '#test/harness/registry.ts';
import type { TestRepository } from '#test/harness/repository.ts';
import { freePort } from '#test/harness/free-port.ts';

const cluster = inject('kubernetes');
/** Engine that builds; null without Terraform, without an engine, or where the nodes could not pull from a registry of the tests. */
const engine =
  cluster.directory === null || !HAS_TERRAFORM
    ? null
    : await findOrStartEngine(process.env).catch((error: Error) => {
        console.warn(`Terraform on Kubernetes is not tried: ${error.message}`);
        return null;
      });

const [image, version] = TERRAFORM_IMAGE.split(':') as [string, string];
const port = await freePort();
const PASSWORD = 'hunter22-of-the-module';
/** Number of resources whose plan and state have far more than the 4,095 bytes of a node's last message. */
const MANY = 100;

/** Returns a module whose last resource runs a command of the shell. */
const moduleOf = (command: string): string => `
variable "password" { sensitive = true }
resource "terraform_data" "many" {
  count = ${MANY}
  input = "resource number \${count.index}"
}
resource "terraform_data" "last" {
  input            = var.password
  triggers_replace = ${JSON.stringify(command)}
  provisioner "local-exec" { command = ${JSON.stringify(command)} }
}
output "NOTE" { value = "made of \${length(terraform_data.many)}" }
output "TOKEN" {
  value     = var.password
  sensitive = true
}
`;

const machine = useMachine({
  QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: `127.0.0.0/8, ${cluster.nodeAddress}/32`,
  QUARTERDECK_TERRAFORM_IMAGE: image,
  QUARTERDECK_TERRAFORM_STATE_PORT: String(port),
  DOCKER_HOST: `unix://${engine?.socketPath}`,
});
/** Lets pods reach the states, at this machine's end of the link to them. */
const REACHED = { QUARTERDECK_TERRAFORM_STATE_URL: `http://${cluster.nodeAddress.replace(/\d+$/, '1')}:${port}` };

let control: ServiceProcess;
let actor: HttpActor;
let registry: TestRegistry;
let forwarder: Server;
let administrator: ReturnType<typeof openCluster>['cluster'];
let repository: TestRepository;
let ofCluster: string;
let environment: string;
let service: string;

const act = (action: string, body: object = {}, wait = 300) =>
  actor.ask('POST', `/terraform/${service}/${action}?wait=${wait}`, 200, body);
const get = (route: string) => actor.ask('GET', route, 200);
const logOf = async (): Promise<string> => JSON.stringify(await get(`/environment/${environment}/logs`));
const stateOf = async (): Promise<string> => (await get(`/terraform/${service}/status`)).state;
const addresses = async (): Promise<string[]> =>
  (await get(`/terraform/${service}/terraformResources`)).results.map(({ address }: { address: string }) => address);
const row = () =>
  machine.db
    .selectFrom('terraform_state')
    .select(['lock_id', 'run_secret'])
    .where('service_id', '=', service)
    .executeTakeFirstOrThrow();
const podsOfRuns = async (): Promise<any[]> => {
  const path = `/api/v1/namespaces/qd-${environment}/pods`;
  return (await administrator.connection.get<{ items: any[] }>(path, { query: { labelSelector: 'quarterdeck.task' } }))
    .items;
};

/** Has the cluster checked, which tells what it lacks. */
const check = () => actor.ask('POST', `${ofCluster}/deploy?wait=60`, 200);

/** Deploys a module that takes some seconds, and waits until its apply is under way. */
async function inTheMiddle(seconds: number): Promise<void> {
  repository.commit({ 'main.tf': moduleOf(`echo it began $((40+${seconds})); sleep ${seconds}; echo it ended`) });
  await actor.ask('POST', `/terraform/${service}/deploy`, 200, {});
  await expect.poll(logOf, { timeout: 120_000 }).toContain(`it began ${40 + seconds}`);
}

beforeAll(async () => {
  if (engine === null) return;
  await ensureTerraformImage(engine.socketPath);
  administrator = openCluster(cluster, machine.installation.id).cluster;
  // Nothing in the cluster makes volumes: this one is for providers.
  await makeVolumes(administrator, 1);
  registry = await startRegistry();
  forwarder = await letPull(cluster, registry);
  control = await machine.start('control');
  actor = await machine.organization('terraform');
  const of = `/organization/${actor.organizationId}`;
  const asCluster = { name: 'k8s', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'kubernetes' };
  const clusterId = (await actor.ask('POST', `${of}/cluster`, 201, asCluster)).id;
  ofCluster = `${of}/cluster/${clusterId}`;
  const put = await fetch(`${control.url}${ofCluster}/kubeconfig`, {
    method: 'PUT',
    headers: { authorization: `Token ${actor.token}`, 'content-type': 'application/x-yaml' },
    body: cluster.kubeconfig,
  });
  expect(put.status, await put.text()).toBeLessThan(300);
  const ofRegistry = { name: 'images', kind: 'GENERIC_CR', url: `${registry.url}/team`, config: {} };
  const { id } = await actor.ask('POST', `${of}/containerRegistry`, 201, ofRegistry);
  await actor.ask('PUT', `${ofCluster}/advancedSettings`, 200, { 'registry.id': id });
  await check();
  const project = (await actor.ask('POST', `${of}/project`, 201, { name: 'infra' })).id;
  const body = { name: 'k8s', cluster_id: clusterId };
  environment = (await actor.ask('POST', `/project/${project}/environment`, 201, body)).id;
  repository = machine.repositories.make();
  repository.commit({ 'main.tf': moduleOf('echo made by the first') });
  const made = await actor.ask('POST', `/environment/${environment}/terraform`, 201, {
    name: 'infra',
    backend: { kubernetes: {} },
    terraform_files_source: { git: { git_repository: { url: repository.url, branch: 'main' } } },
    terraform_variables_source: {
      tf_var_file_paths: [],
      tf_vars: [{ key: 'password', value: PASSWORD, secret: true }],
    },
    provider_version: { explicit_version: version },
    job_resources: { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 1 },
  });
  service = made.id;
}, 240_000);

afterAll(async () => {
  if (engine === null) return;
  if (control?.running) await control.terminate();
  forwarder.close();
  await registry.stop();
  await removeMade(administrator);
  await administrator.connection.close();
  await stopEngine(engine);
}, 120_000);

describe.skipIf(engine === null)('a Terraform service on a Kubernetes cluster', () => {
  test('is refused with the remedy while pods know no address of its state', { timeout: 120_000 }, async () => {
    const { status, body } = await actor.call('POST', `/terraform/${service}/deploy`, {});
    expect([status, body.message]).toEqual([
      400,
      expect.stringMatching(/keeps its state in Quarterdeck.*set QUARTERDECK_TERRAFORM_STATE_URL/),
    ]);
    await control.terminate();
    control = await machine.again(control, REACHED);
    await check();
  });

  test('is planned and applied, and its outputs become variables', { timeout: 600_000 }, async () => {
    expect(await act('deploy', { action: 'PLAN' }), await logOf()).toMatchObject({ state: 'READY' });
    const { plan } = await get(`/terraform/${service}/plan`);
    expect(plan.summary).toMatchObject({ create: MANY + 1 });
    expect(JSON.stringify(plan).length).toBeGreaterThan(4095);
    expect(await addresses()).toEqual([]);

    expect(await act('deploy'), await logOf()).toMatchObject({ state: 'DEPLOYED' });
    expect(await addresses()).toHaveLength(MANY + 1);
    const { results: variables } = await get(`/terraform/${service}/environmentVariable`);
    expect(variables).toContainEqual(expect.objectContaining({ key: 'NOTE', value: `made of ${MANY}` }));
    const { results: secrets } = await get(`/terraform/${service}/secret`);
    expect(secrets).toContainEqual(expect.objectContaining({ key: 'TOKEN' }));
    const log = await logOf();
    expect(log).toContain('made by the first');
    expect(log + JSON.stringify(variables)).not.toContain(PASSWORD);
    expect(await row()).toEqual({ lock_id: null, run_secret: null });
    await expect.poll(podsOfRuns).toEqual([]);
  });

  test('that fails tells why, and keeps the state of what was made', { timeout: 600_000 }, async () => {
    repository.commit({ 'main.tf': moduleOf('echo no such disk >&2; exit 3') });
    expect(await act('deploy')).toMatchObject({ state: 'DEPLOYMENT_ERROR' });
    const log = await logOf();
    expect(log).toMatch(/no such disk/);
    expect(log).toMatch(/terraform-apply ended with status 1/);
    expect(await addresses()).toContain('terraform_data.many[0]');
    expect(await row()).toEqual({ lock_id: null, run_secret: null });
    await expect.poll(podsOfRuns).toEqual([]);
  });

  test('ends in order when it is cancelled, and its state is not locked', { timeout: 600_000 }, async () => {
    await inTheMiddle(100);
    expect(await row()).toMatchObject({ lock_id: expect.any(String) });
    await actor.ask('POST', `/environment/${environment}/cancelDeployment?wait=100`, 200, {});
    await expect.poll(stateOf, { timeout: 60_000 }).toBe('CANCELED');
    // Nobody but Terraform itself releases the lock of a run that is cancelled.
    await expect.poll(row, { timeout: 60_000 }).toMatchObject({ lock_id: null });
    await expect.poll(podsOfRuns, { timeout: 60_000 }).toEqual([]);
  });

  test('goes on while its worker is killed, and the next one takes its end', { timeout: 600_000 }, async () => {
    await inTheMiddle(10);
    const [before] = await podsOfRuns();
    await control.kill();
    control = await machine.again(control, REACHED);
    await machine.settled(180_000);
    expect(await stateOf(), await logOf()).toBe('DEPLOYED');
    const log = await logOf();
    expect(log).toContain('it ended');
    expect(log).toContain('was begun already: it is taken over');
    expect(before.metadata.name).toMatch(/^task-terraform-apply-1-/);
    expect((await get(`/terraform/${service}/plan`)).plan.summary).toBeDefined();
    expect(await row()).toEqual({ lock_id: null, run_secret: null });
  });

  test('destroys what it made when it is deleted, and leaves nothing', { timeout: 600_000 }, async () => {
    await actor.ask('DELETE', `/terraform/${service}`, 204);
    await machine.settled(200_000);
    expect((await actor.call('GET', `/terraform/${service}`)).status, await logOf()).toBe(404);
    expect(await logOf()).toMatch(new RegExp(`Destroy complete! Resources: ${MANY + 1} destroyed`));
    const identity = { serviceId: service } as Parameters<typeof leftoversOf>[1];
    await expect.poll(() => leftoversOf(administrator, identity), { timeout: 60_000 }).toEqual([]);
  });
});
