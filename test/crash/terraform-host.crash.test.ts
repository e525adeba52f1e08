import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pino } from 'pino';
import { createRuntimes, type Runtimes } from '#app/runtimes.ts';
import { HAS_TERRAFORM } from '#services/kinds/terraform/testing.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { removeAll } from '#test/crash/harness/kills.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import type { ServiceProcess } from '#test/crash/harness/process.ts';
import { until } from '#test/crash/harness/until.ts';
import { findFaults } from '#test/crash/harness/world.ts';
import { freePort } from '#test/harness/free-port.ts';

/** Module whose apply takes 5 seconds, during which a test kills processes. */
const MODULE = `
resource "terraform_data" "slow" {
  input = timestamp()
  provisioner "local-exec" { command = "echo it began; sleep 5" }
}
output "NOTE" { value = "made" }
`;

const machine = useMachine({
  QUARTERDECK_RUNTIME: 'host',
  // Running programs use this address while the worker restarts.
  QUARTERDECK_TERRAFORM_STATE_PORT: String(await freePort()),
});
let runtimes: Runtimes;
let worker: ServiceProcess;
let actor: HttpActor;

interface Service {
  id: string;
  environmentId: string;
}

async function makeService(name: string): Promise<Service> {
  const repository = machine.repositories.make();
  repository.commit({ 'main.tf': MODULE });
  const environmentId = await actor.environment(name);
  const { id } = await actor.ask('POST', `/environment/${environmentId}/terraform`, 201, {
    name: 'infra',
    backend: { kubernetes: {} },
    terraform_files_source: { git: { git_repository: { url: repository.url, branch: 'main' } } },
    provider_version: { explicit_version: '', read_from_terraform_block: true },
  });
  return { id, environmentId };
}

/** Returns the process ids of a service that run `apply`, found by its id in their environment. */
const applying = ({ id }: Service): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return pid > 0 && command.includes('apply') && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(id);
      } catch {
        return false; // It has ended meanwhile.
      }
    });

const logOf = async ({ environmentId }: Service): Promise<string> =>
  JSON.stringify(await actor.ask('GET', `/environment/${environmentId}/logs`, 200));

/** Requests a deployment and waits until it is in the middle of its apply. */
async function inTheMiddle(service: Service): Promise<number[]> {
  await actor.ask('POST', `/terraform/${service.id}/deploy`, 200, {});
  await until('it makes something', async () => (await logOf(service)).includes('it began'), 60_000);
  return until('the program is there', () => applying(service).length > 0 && applying(service));
}

const stateOf = ({ id }: Service) =>
  machine.db
    .selectFrom('terraform_state')
    .select(['lock_id', 'run_secret'])
    .where('service_id', '=', id)
    .executeTakeFirstOrThrow();

const resourcesOf = async ({ id }: Service) =>
  (await actor.ask('GET', `/terraform/${id}/terraformResources`, 200)).results;
const statusOf = async ({ id }: Service) => (await actor.ask('GET', `/terraform/${id}/status`, 200)).state;

describe.skipIf(!HAS_TERRAFORM)('in the middle of an apply', () => {
  beforeAll(async () => {
    await machine.start('api', { role: 'api' });
    worker = await machine.start('worker', { role: 'worker' });
    runtimes = createRuntimes(machine.platform.settings, machine.installation.id, pino({ level: 'silent' }));
    actor = await machine.organization('terraform', { runtime: 'host', node: await machine.nodeId() });
  });
  afterAll(async () => {
    await removeAll(machine, await runtimes.onMachine('host'));
    await runtimes.close();
  });

  const expectWhole = async (service: Service) => {
    expect(await statusOf(service), await logOf(service)).toBe('DEPLOYED');
    expect(await resourcesOf(service)).toMatchObject([{ address: 'terraform_data.slow' }]);
    expect(await stateOf(service)).toEqual({ lock_id: null, run_secret: null });
    expect(applying(service)).toEqual([]);
    const runtime = await runtimes.onMachine('host');
    const world = { observe: runtime.observe.bind(runtime), list: () => runtime.list!() };
    expect(await findFaults({ ...machine, ...world })).toEqual([]);
  };

  test(
    'a worker that is killed leaves the program at work, whose end the next one takes: it is run once',
    { timeout: 240_000 },
    async () => {
      const service = await makeService('worker');
      const before = await inTheMiddle(service);
      await worker.kill();
      expect(applying(service)).toEqual(before);
      worker = await machine.again(worker);
      await machine.settled(120_000);
      await expectWhole(service);
      const { n } = await machine.db
        .selectFrom('terraform_state_version')
        .select(({ fn }) => fn.countAll<number>().as('n'))
        .where('service_id', '=', service.id)
        .executeTakeFirstOrThrow();
      expect(Number(n), 'states that one apply writes').toBeLessThanOrEqual(2);
    },
  );

  test(
    'a program that is killed fails the deployment, its lock is released, and the next deployment goes through',
    { timeout: 240_000 },
    async () => {
      const service = await makeService('program');
      for (const pid of await inTheMiddle(service)) process.kill(pid, 'SIGKILL');
      await machine.settled(120_000);
      expect(await statusOf(service)).toBe('DEPLOYMENT_ERROR');
      expect(await stateOf(service)).toEqual({ lock_id: null, run_secret: null });
      await actor.ask('POST', `/terraform/${service.id}/deploy?wait=120`, 200, {});
      await expectWhole(service);
    },
  );
});
