import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { rbacManifest } from '#app/kubernetes.ts';
import { sql } from '#platform/database/index.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { makeAccount, type ManifestObject } from '#test/harness/kubernetes-account.ts';
import { KubernetesProgram } from '#test/harness/kubernetes-program.ts';
import type { Program } from '#test/harness/program.ts';

const cluster = inject('kubernetes');

let place: KubernetesProgram;
let program: Program;
let environment: string;
let registryId: string;
let clusterId: string;

const PASSWORD = 'hunter22-of-the-schema';
const OUTPUT = JSON.stringify({ HOST: 'db.example.com', PASSWORD: { value: PASSWORD, sensitive: true } });

/** Creates an account with the printed rights on those resources that are wanted; returns its kubeconfig. */
function accountWith(wanted: (resource: string) => boolean): Promise<string> {
  const name = `jobs-${randomUUID().slice(0, 8)}`;
  const objects = rbacManifest(name).map((object: any) => {
    if (!object.kind.startsWith('ClusterRole')) return object;
    const rules = object.rules?.filter(({ resources }: { resources: string[] }) => resources.every(wanted));
    const roleRef = object.roleRef && { ...object.roleRef, name };
    return { ...object, metadata: { name }, ...(rules ? { rules } : { roleRef }) };
  });
  return makeAccount(cluster, place.administrator, objects as ManifestObject[], name);
}

/** Event of a job that runs a script of the shell. */
const event = (script: string) => ({ entrypoint: '/bin/busybox', arguments: ['sh', '-c', script] });

async function useAccount(kubeconfig: string): Promise<void> {
  await place.useKubeconfig(clusterId, kubeconfig);
  expect(await place.deployCluster(clusterId)).toMatchObject({ status: 'DEPLOYED' });
}

async function makeJob(name: string, schedule: object, changes: object = {}): Promise<string> {
  const body = {
    name,
    source: { image: { registry_id: registryId, image_name: 'job', tag: '1' } },
    healthchecks: {},
    schedule,
    cpu: 50,
    memory: 32,
    ...changes,
  };
  return (await program.ask('POST', `/environment/${environment}/job`, body)).id;
}

/** Returns the executions of a job, the newest first, and what the newest wrote. */
async function ran(id: string): Promise<{ executions: any[]; lines: string[] }> {
  const { results: executions } = await program.ask('GET', `/job/${id}/execution`);
  const { results } = await program.ask('GET', `/job/${id}/execution/${executions[0].id}/log`);
  return { executions, lines: results.map(({ message }: { message: string }) => message) };
}

beforeAll(async () => {
  place = await KubernetesProgram.start(cluster);
  ({ program } = place);
  const busybox = { content: await readFile(findProgram('busybox')!), mode: 0o755 };
  const serve = 'trap "exit 0" TERM; echo "host $HOST password $PASSWORD"; /bin/busybox sleep 1000 & wait';
  const Cmd = ['/bin/busybox', 'sh', '-c', serve];
  await place.registry.pushImage('job', '1', { files: { 'bin/busybox': busybox }, config: { Cmd } });
  registryId = await place.makeImageRegistry();
  clusterId = await place.makeCluster();
  environment = await place.makeEnvironment(clusterId);
}, 120_000);

afterAll(() => place.close(), 60_000);

describe.skipIf(cluster.directory === null)('jobs on a Kubernetes cluster', () => {
  test('are refused while the account lacks their rights, and run once it has them', { timeout: 60_000 }, async () => {
    await useAccount(await accountWith((resource) => resource !== 'jobs'));
    const job = await makeJob('early', { on_start: event('echo up') });
    const { status, text } = await program.send('POST', `/job/${job}/deploy`);
    expect([status, text]).toEqual([
      400,
      expect.stringMatching(/lacks rights: .*jobs\.batch .*quarterdeck cluster rbac/),
    ]);
    await useAccount(await accountWith(() => true));
    expect(await program.ask('POST', `/job/${job}/deploy?wait=60`)).toMatchObject({ state: 'DEPLOYED' });
    await program.ask('DELETE', `/job/${job}`);
  });

  test(
    'run at the events of their lifecycle, and what they write becomes variables of a container',
    { timeout: 120_000 },
    async () => {
      const job = await makeJob('schema', {
        on_start: event(`echo up; echo '${OUTPUT}' > /quarterdeck-output/output.json`),
        on_stop: event('echo stopping $HOST'),
        on_delete: event('echo down'),
      });
      const container = await program.ask('POST', `/environment/${environment}/container`, {
        name: 'shop',
        registry_id: registryId,
        image_name: 'job',
        tag: '1',
        cpu: 50,
        memory: 32,
        ports: [],
        healthchecks: {},
      });
      await program.ask('POST', `/environment/${environment}/deploy?wait=100`);
      const status = await program.ask('GET', `/environment/${environment}/status`);
      expect(status).toMatchObject({ state: 'DEPLOYED' });
      expect((await ran(job)).lines).toContain('up');
      const { results: lines } = await program.ask('GET', `/container/${container.id}/log`);
      expect(lines.map(({ message }: { message: string }) => message)).toContainEqual(
        expect.stringMatching(/^host db\.example\.com password /),
      );
      expect(await program.ask('POST', `/job/${job}/deploy?forceEvent=DELETE&wait=60`)).toMatchObject({
        state: 'DEPLOYED',
      });
      expect((await ran(job)).lines).toContain('down');
      expect(await program.ask('POST', `/job/${job}/stop?wait=60`)).toMatchObject({ state: 'STOPPED' });
      expect((await ran(job)).lines).toContain('stopping db.example.com');
    },
  );

  test('run at their times', { timeout: 90_000 }, async () => {
    const job = await makeJob('report', { cronjob: { scheduled_at: '0 0 1 1 *', ...event('echo reported') } });
    await program.ask('POST', `/job/${job}/deploy?wait=60`);
    const { db } = program.running.base.engineDatabase;
    // A worker makes the schedule of a release when it looks for what is due.
    const makeDue = () => sql`update cron_schedule set next_at = now() where service_id = ${job}`.execute(db);
    await expect.poll(async () => (await makeDue()).numAffectedRows).toBe(1n);
    await expect
      .poll(async () => (await program.ask('GET', `/job/${job}/execution`)).results[0]?.state, { timeout: 60_000 })
      .toBe('SUCCEEDED');
    expect((await ran(job)).lines).toContain('reported');
    expect(await program.ask('POST', `/job/${job}/deploy?forceEvent=CRON&wait=60`)).toMatchObject({
      state: 'DEPLOYED',
    });
    expect((await ran(job)).executions).toHaveLength(2);
  });

  test('are tried again when they fail, and then say why with what they wrote', { timeout: 90_000 }, async () => {
    const job = await makeJob('failing', { on_start: event('echo last words; exit 3') }, { max_nb_restart: 1 });
    const status = await program.ask('POST', `/job/${job}/deploy?wait=60`);
    expect(status).toMatchObject({ state: 'DEPLOYMENT_ERROR' });
    const { executions, lines } = await ran(job);
    expect(executions[0]).toMatchObject({ state: 'FAILED', attempts: 2, exit_code: 3 });
    expect(lines.filter((line) => line === 'last words')).toHaveLength(2);
    const logs = await program.ask('GET', `/environment/${environment}/logs`);
    const said = logs.map((line: any) => line.message?.safe_message ?? line.error?.user_log_message);
    expect(said.join('\n')).toMatch(/last words[^]*ended with status 3/);
  });

  test('end when their deployment is cancelled', { timeout: 90_000 }, async () => {
    const job = await makeJob('slow', { on_start: event('trap "echo cut; exit 0" TERM; echo begun; /bin/busybox sleep 100 & wait') }); // prettier-ignore
    await program.ask('POST', `/job/${job}/deploy`);
    await expect
      .poll(async () => (await ran(job).catch(() => ({ lines: [] }))).lines, { timeout: 60_000 })
      .toContain('begun');
    await program.ask('POST', `/environment/${environment}/cancelDeployment?wait=60`, {});
    await expect.poll(async () => (await ran(job)).executions[0].state).toBe('CANCELED');
    const pods = await place.administrator.connection.get<{ items: any[] }>(
      `/api/v1/namespaces/qd-${environment}/pods`,
      {
        query: { labelSelector: `quarterdeck.service=${job}` },
      },
    );
    expect(pods.items.map(({ status }) => status.phase)).toEqual(['Failed']);
  });

  test('leave nothing of an environment that is deleted', { timeout: 120_000 }, async () => {
    const namespaces = async () => {
      const { items } = await place.administrator.connection.get<{ items: any[] }>('/api/v1/namespaces');
      return items.map(({ metadata }) => metadata.name).filter((name: string) => name.includes(environment));
    };
    expect(await namespaces()).toHaveLength(1);
    await program.ask('DELETE', `/environment/${environment}`);
    await expect
      .poll(async () => (await program.send('GET', `/environment/${environment}`)).status, { timeout: 60_000 })
      .toBe(404);
    await program.keepHouse();
    await expect.poll(namespaces, { timeout: 30_000 }).toEqual([]);
  });
});
