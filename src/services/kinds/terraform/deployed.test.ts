import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import type { TaskSpec } from '#runtimes/runtime.ts';
import type { Engine } from '#services/kinds/terraform/schema.ts';
import { PROGRAMS, runReally, type RealRun } from '#services/kinds/terraform/testing.ts';
import { ok } from '#test/harness/app.ts';
import { MODULE, tfVars, useTerraformServices, type TerraformService } from '#test/harness/terraform-services.ts';

const { app, engine, makeServiceOf } = useTerraformServices();
const folder = mkdtempSync(path.join(tmpdir(), 'qd-terraform-kind-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

for (const { engine: by, program, isHere } of PROGRAMS)
  describe.skipIf(!isHere)(`deployed with the real ${program}`, { timeout: 60_000 }, () => testDeployedBy(by));

function testDeployedBy(by: Engine): void {
  const makeService = (more: Record<string, unknown> = {}, module = MODULE) =>
    makeServiceOf({ engine: by, ...more }, module);

  const runs: RealRun[] = [];
  const specs: TaskSpec[] = [];
  beforeEach(() => {
    runs.length = 0;
    specs.length = 0;
  });

  /** Makes the fake runtime execute a service with the real program. */
  const really = ({ id, repository }: TerraformService) =>
    engine.runtime.onTask(id, async (spec) => {
      specs.push(spec);
      const run = runReally(folder, spec, repository.url);
      runs.push(run);
      return run.ended;
    });

  const deployed = async (service: TerraformService) => {
    really(service);
    expect((await service.act('deploy')).state, await service.log()).toBe('DEPLOYED');
    return service;
  };
  const resourcesOf = async ({ admin, url }: TerraformService) =>
    ok(await admin.get(`${url}/terraformResources`), 200).results as { id: string; address: string; attributes: any }[];
  const addressesOf = async (service: TerraformService) => (await resourcesOf(service)).map(({ address }) => address);

  test('it applies, lists its resources, and its outputs become variables and secrets of the environment', async () => {
    const service = await makeService({
      terraform_variables_source: {
        tf_var_file_paths: ['prod.tfvars'],
        tf_vars: [
          { key: 'password', value: 'hunter22', secret: true },
          { key: 'tags', value: '["a", "b"]' },
          { key: 'policy', value: '{"Version": "2012"}' },
        ],
      },
    });
    const { admin, url, environmentId } = await deployed(service);
    expect(await addressesOf(service)).toEqual(['terraform_data.greeting', 'terraform_data.secret']);
    const variables = ok(await admin.get(`/environment/${environmentId}/environmentVariable`), 200).results;
    const valueOf = (key: string) => variables.find((one: { key: string }) => one.key === key)?.value;
    expect([valueOf('greeting_text'), valueOf('tags'), valueOf('password')]).toEqual([
      'hello file',
      '["a","b"]',
      undefined,
    ]);
    const secrets = ok(await admin.get(`/environment/${environmentId}/secret`), 200).results;
    expect(secrets.map((one: { key: string }) => one.key)).toContain('password');

    const status = ok(await admin.get(`${url}/status`), 200);
    expect(status).toMatchObject({
      service_deployment_status: 'UP_TO_DATE',
      status_details: { sub_action: 'TERRAFORM_PLAN_AND_APPLY' },
    });
    const plan = ok(await admin.get(`${url}/plan`), 200);
    expect(plan).toMatchObject({ applied: true, plan: { summary: { create: 2, update: 0, replace: 0, delete: 0 } } });
    const everything = [await service.log(), await resourcesOf(service), plan, status, ok(await admin.get(url), 200)];
    expect(JSON.stringify(everything)).not.toContain('hunter22');
    await until(() => !engine.runtime.leftovers(specs[0]!.identity).some((one) => one.startsWith('execution')));
    expect(specs[0]!.arguments.concat(specs[0]!.entrypoint).join(' ')).not.toContain('hunter22');
    const deployedCommit = ok(await admin.get(url), 200).terraform_files_source.git.git_repository.deployed_commit_id;
    expect(deployedCommit).toBe(service.repository.git('rev-parse', 'HEAD'));
  });

  test('a second deployment changes only what has changed, and nothing is built for it', async () => {
    const service = await deployed(await makeService());
    const before = await resourcesOf(service);
    const { admin, url } = service;
    ok(await admin.put(url, tfVars({ key: 'name', value: 'again' })), 200);
    expect((await service.act('deploy')).state).toBe('DEPLOYED');
    expect(ok(await admin.get(`${url}/plan`), 200).plan.summary).toMatchObject({ create: 0, update: 1 });
    const after = await resourcesOf(service);
    expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(after[0]!.attributes.output).toBe('hello again');
    expect(
      engine.runtime.calls.filter(({ verb, serviceId }: any) => verb === 'build' && serviceId === service.id).length,
    ).toBeLessThan(2);
  });

  test('a plan shows what would change, changes nothing, and leaves the service as it was', async () => {
    const service = await deployed(await makeService());
    const { admin, url } = service;
    ok(await admin.put(url, tfVars({ key: 'password', value: 'hunter22', secret: true })), 200);
    const status = await service.act('deploy', { action: 'PLAN' });
    expect(status).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'OUT_OF_DATE' });
    const { applied, plan } = ok(
      await admin.get(
        `${url}/plan?deploymentRequestId=${status.requested ?? ''}`.replace(/\?deploymentRequestId=$/, ''),
      ),
      200,
    );
    expect({ applied, summary: plan.summary }).toMatchObject({ applied: false, summary: { update: 1 } });
    expect(JSON.stringify(plan) + (await service.log())).not.toContain('hunter22');
    expect((await resourcesOf(service))[1]!.attributes.input).not.toBe('hunter22');
    const { results } = ok(await admin.get(`${url}/deploymentHistoryV2`), 200);
    expect(results[0].status_details.sub_action).toBe('TERRAFORM_PLAN_ONLY');
  });

  test('a failure in the middle of an apply leaves what was made in the list, and no lock', async () => {
    const failing = `${MODULE}\nresource "terraform_data" "bad" {\n  depends_on = [terraform_data.greeting]\n  provisioner "local-exec" { command = "exit 3" }\n}\n`;
    const service = await makeService({}, failing);
    really(service);
    expect((await service.act('deploy')).state).toBe('DEPLOYMENT_ERROR');
    expect(await addressesOf(service)).toContain('terraform_data.greeting');
    service.repository.commit({ 'main.tf': MODULE });
    expect((await service.act('deploy')).state, await service.log()).toBe('DEPLOYED');
    expect(await addressesOf(service)).toEqual(['terraform_data.greeting', 'terraform_data.secret']);
  });

  const waiting = (at: string) =>
    `resource "terraform_data" "slow" {\n  provisioner "local-exec" { command = "touch ${at}.begun; while [ ! -f ${at}.go ]; do sleep 0.1; done" }\n}\n`;

  const until = async (look: () => boolean): Promise<void> => expect.poll(look).toBe(true);

  test('a run that is killed is an error, its lock is released, and the next one applies what was left, once', async () => {
    const at = path.join(folder, newId());
    const service = await makeService({}, waiting(at));
    really(service);
    const first = service.act('deploy');
    await until(() => existsSync(`${at}.begun`));
    process.kill(-runs[0]!.pid, 'SIGKILL');
    expect((await first).state).toBe('DEPLOYMENT_ERROR');
    expect(await service.log()).toContain('it is released now');
    writeFileSync(`${at}.go`, '');
    expect((await service.act('deploy')).state, await service.log()).toBe('DEPLOYED');
    expect(await addressesOf(service)).toEqual(['terraform_data.slow']);
  });

  test('a run that is cancelled is over: its credential opens nothing any more', async () => {
    const at = path.join(folder, newId());
    const service = await makeService({}, waiting(at));
    really(service);
    ok(await service.admin.post(`${service.url}/deploy`, {}), 200);
    await until(() => existsSync(`${at}.begun`));
    ok(await service.admin.post(`/environment/${service.environmentId}/cancelDeployment`, {}), 200);
    writeFileSync(`${at}.go`, '');
    const credential = async () =>
      (
        await app.db
          .selectFrom('terraform_state')
          .select('run_secret_hash')
          .where('service_id', '=', service.id)
          .executeTakeFirst()
      )?.run_secret_hash;
    await expect.poll(credential).toBeNull();
  });

  test('a lock that somebody holds ends a deployment, and is released by force', async () => {
    const service = await deployed(await makeService());
    const lock = {
      ID: newId(),
      Operation: 'OperationTypeApply',
      Who: 'ada@laptop',
      Info: '',
      Version: '',
      Created: new Date().toISOString(),
      Path: '',
    };
    await app.db
      .updateTable('terraform_state')
      .set({ lock: JSON.stringify(lock), lock_id: lock.ID, lock_generation: 1 })
      .where('service_id', '=', service.id)
      .execute();
    expect((await service.act('deploy')).state).toBe('DEPLOYMENT_ERROR');
    expect(await service.log()).toContain(`The state is locked: the lock ${lock.ID} of ada@laptop`);
    const unlocked = await service.act('deploy', { action: 'FORCE_UNLOCK' });
    expect(await service.log()).toContain('ada@laptop');
    expect(unlocked.state).toBe('DEPLOYMENT_ERROR');
    expect((await service.act('deploy')).state, await service.log()).toBe('DEPLOYED');
    const events = ok(
      await service.admin.get(`/organization/${service.admin.organizationId}/events?pageSize=100`),
      200,
    ).events;
    const types = events.map((event: { event_type: string }) => event.event_type);
    expect(types).toEqual(
      expect.arrayContaining(['TRIGGER_TERRAFORM_FORCE_UNLOCK', 'TERRAFORM_FORCE_UNLOCK_SUCCEEDED']),
    );
  });

  test('a state is migrated to another backend', async () => {
    const own = path.join(folder, `${newId()}.tfstate`);
    const module = (rest: string) => `terraform {\n  backend "local" { path = "${own}" }\n}\n${rest}`;
    const service = await makeService(
      { backend: { user_provided: {} } },
      module('resource "terraform_data" "a" { input = 1 }\n'),
    );
    await deployed(service);
    expect(await addressesOf(service)).toEqual(['terraform_data.a']);
    ok(await service.admin.put(service.url, { backend: { kubernetes: {} } }), 200);
    const migrated = await service.act('deploy', { action: 'MIGRATE_STATE' });
    expect(migrated.service_deployment_status, await service.log()).toBe('OUT_OF_DATE');
    expect((await service.act('deploy')).state, await service.log()).toBe('DEPLOYED');
    expect(ok(await service.admin.get(`${service.url}/plan`), 200).plan.changes).toEqual([]);
  });

  test('uninstalling destroys what was made and takes its outputs away; the service can be deployed again', async () => {
    const service = await deployed(await makeService());
    const { admin, environmentId } = service;
    expect((await service.act('uninstall')).state, await service.log()).toBe('DELETED');
    expect(await addressesOf(service)).toEqual([]);
    const keys = ok(await admin.get(`/environment/${environmentId}/environmentVariable`), 200).results.map(
      (one: { key: string }) => one.key,
    );
    expect(keys).not.toContain('greeting_text');
    expect((await service.act('deploy')).state, await service.log()).toBe('DEPLOYED');
  });

  test('deleting applies and destroys first, without the apply where it is skipped, and nothing where that is asked for', async () => {
    const gone = async (service: TerraformService) => {
      for (const end = Date.now() + 40_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
        const { status } = await service.admin.get(service.url);
        if (status === 404) return;
        if (Date.now() > end) throw new Error(await service.log());
      }
    };
    for (const [query, expected] of [
      ['', ['terraform-apply', 'terraform-reconcile-destroy']],
      ['?skipReconcile=true', ['terraform-apply', 'terraform-destroy']],
      ['?force_terraform_action=SKIP_DESTROY', ['terraform-apply']],
    ] as const) {
      specs.length = 0;
      const service = await deployed(await makeService());
      ok(await service.admin.delete(`${service.url}${query}`), 204);
      await gone(service);
      expect(specs.map(({ name }) => name.replace(/-1$/, ''))).toEqual(expected);
    }
  });

  test('deleting a service whose first apply failed destroys what that left', async () => {
    const at = path.join(folder, newId());
    const failing = `resource "terraform_data" "a" {\n  provisioner "local-exec" {\n    when = destroy\n    command = "touch ${at}.destroyed"\n  }\n}\nresource "terraform_data" "b" {\n  depends_on = [terraform_data.a]\n  provisioner "local-exec" { command = "exit 3" }\n}\n`;
    const service = await makeService({}, failing);
    really(service);
    expect((await service.act('deploy')).state).toBe('DEPLOYMENT_ERROR');
    ok(await service.admin.delete(service.url), 204);
    await until(() => existsSync(`${at}.destroyed`));
  });

  test('only the resources are deleted where that is asked for', async () => {
    const service = await deployed(await makeService());
    ok(await service.admin.delete(`${service.url}?resources_only=true`), 204);
    for (;;) {
      const { state } = ok(await service.admin.get(`${service.url}/status`), 200);
      if (state === 'DELETED') break;
      expect(state).not.toContain('ERROR');
    }
    expect(await addressesOf(service)).toEqual([]);
    ok(await service.admin.get(service.url), 200);
  });

  test('a clone has the configuration and its secrets, and no state', async () => {
    const service = await deployed(await makeService(tfVars({ key: 'password', value: 'hunter22', secret: true })));
    const { admin, environmentId, url } = service;
    const copy = ok(await admin.post(`${url}/clone`, { name: 'copy', environment_id: environmentId }), 201);
    const other: TerraformService = {
      ...service,
      id: copy.id,
      url: `/terraform/${copy.id}`,
      act: async (action, said = {}) => ok(await admin.post(`/terraform/${copy.id}/${action}?wait=60`, said), 200),
    };
    expect(await addressesOf(other)).toEqual([]);
    await deployed(other);
    expect(ok(await admin.get(`${other.url}/plan`), 200).plan.summary.create).toBe(2);
    expect(specs.at(-1)!.files.some(({ content }) => content.includes('hunter22'))).toBe(true);
  });
}
