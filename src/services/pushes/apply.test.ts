import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { commit, SHOP, usePushes, ZERO } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const { git, environmentOf, applicationIn, webhookOf, push, worker, applied, requested, deployments } = usePushes(app);
const [a, b, c] = [commit('a'), commit('b'), commit('c')];

async function place(body: object = {}) {
  const admin = await app.organization();
  const environment = await environmentOf(admin);
  const web = await applicationIn(admin, environment, body);
  const hook = await webhookOf(admin);
  worker();
  return { admin, environment, web, hook };
}

const resultsOf = async (admin: Actor): Promise<string[][]> =>
  (await applied(admin)).map(({ outcome }) => ((outcome ?? []) as any[]).map(({ result }) => result as string));
const newestOf = async (id: string) =>
  (await app.db.selectFrom('service').select('newest_commit').where('id', '=', id).executeTakeFirstOrThrow())
    .newest_commit;
/** Lets an environment's waiting deployments end. */
const end = (environment: string) =>
  sql`update deployment set status = 'ENDED', outcome = 'SUCCESS', ended_at = now() where environment_id = ${environment}`.execute(
    app.db,
  );

describe('a push', () => {
  test('deploys what its files concern', async () => {
    const { admin, environment, web, hook } = await place();
    const api = await applicationIn(admin, environment);
    const restrict = (id: string, mode: string, value: string) => admin.post(`/application/${id}/deploymentRestriction`, { mode, type: 'PATH', value }); // prettier-ignore
    ok(await restrict(api, 'MATCH', 'api'), 201);
    ok(await restrict(api, 'EXCLUDE', 'api/docs'), 201);
    await push(hook, { before: ZERO, after: a, files: ['web/x'] });
    // A new branch: the provider does not say what differs from what was deployed, and git is asked.
    git.changes = { author: 'Grace', message: '', paths: ['web/x'] };
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: a }]);
    await push(hook, { before: a, after: b, files: ['web/x', 'api/docs/y'] });
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: b }]);
    expect(await newestOf(api)).toBeNull();
    await push(hook, { before: b, after: c, files: ['api/z'] });
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: c, [api]: c }]);
  });

  test.each(['[skip ci] docs', 'docs\n\n[CI skip]'])(
    'whose message says %j is recorded and deploys nothing',
    async (message) => {
      const { admin, environment, web, hook } = await place();
      await push(hook, { before: a, after: b, message });
      expect(await resultsOf(admin)).toEqual([['SKIPPED']]);
      expect(await requested(environment)).toEqual([]);
      expect(await newestOf(web)).toBe(b);
    },
  );

  test('of a tag, of a deleted branch and of another branch deploys nothing', async () => {
    const { admin, environment, hook } = await place();
    await push(hook, { branch: 'refs/tags/main', before: ZERO, after: a });
    await push(hook, { branch: 'next', before: a, after: b });
    await push(hook, { before: b, after: ZERO });
    await applied(admin);
    expect(await requested(environment)).toEqual([]);
    // The branch is made again.
    await push(hook, { before: ZERO, after: c });
    await applied(admin);
    expect(await deployments(environment)).toHaveLength(1);
  });

  test('that was forced goes back to an older commit, and one that comes late does not', async () => {
    const { admin, environment, web, hook } = await place();
    await push(hook, { before: a, after: b });
    await applied(admin);
    await push(hook, { before: b, after: a, forced: true });
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: a }]);
    await push(hook, { before: b, after: c });
    await push(hook, { before: a, after: b, isOld: true });
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: c }]);
  });

  test('of the default branch reaches services that follow HEAD', async () => {
    const { admin, environment, web, hook } = await place({ git_repository: { url: SHOP, branch: 'HEAD' } });
    await push(hook, { branch: 'next', before: a, after: b });
    await push(hook, { before: a, after: c });
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: c }]);
  });

  test('makes one deployment in each environment, and a second one waits behind the first that runs', async () => {
    const { admin, environment, web, hook } = await place();
    const other = await environmentOf(admin);
    const there = await applicationIn(admin, other);
    const api = await applicationIn(admin, environment);
    await push(hook, { before: a, after: b });
    await applied(admin);
    await sql`update deployment set status = 'RUNNING' where environment_id = ${environment}`.execute(app.db);
    await push(hook, { before: b, after: c });
    await push(hook, { before: c, after: a });
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: b, [api]: b }, { [web]: a, [api]: a }]); // prettier-ignore
    expect(await requested(other)).toEqual([{ [there]: a }]);
  });

  test('joins neither what a person has requested nor a commit that they chose', async () => {
    const { admin, environment, web, hook } = await place();
    ok(await admin.post(`/application/${web}/deploy`, { git_commit_id: c }), 200);
    await push(hook, { before: a, after: b });
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: c }, { [web]: b }]);
  });

  test('starts nothing that was stopped or uninstalled, and records the commit', async () => {
    const { admin, environment, web, hook } = await place();
    await app.db.updateTable('service').set({ wanted: 'stopped' }).where('id', '=', web).execute();
    await push(hook, { before: a, after: b });
    expect(await resultsOf(admin)).toEqual([['NOT_RUNNING']]);
    expect(await requested(environment)).toEqual([]);
    expect(await newestOf(web)).toBe(b);
  });

  test('to an environment of a locked cluster is put off until it is unlocked', async () => {
    const { admin, environment, web, hook } = await place();
    const lock = (locked: boolean) =>
      sql`update cluster set locked_at = ${locked ? new Date() : null} where organization_id = ${admin.organizationId}`.execute(
        app.db,
      );
    await lock(true);
    await push(hook, { before: a, after: b });
    const put = () => app.db.selectFrom('git_push').selectAll().where('organization_id', '=', admin.organizationId).where('environment_ids', 'is not', null).execute(); // prettier-ignore
    await expect.poll(async () => (await put()).length).toBe(1);
    expect(await put()).toMatchObject([{ environment_ids: [environment], after_commit: b }]);
    await lock(false);
    const api = await applicationIn(admin, environment);
    ok(
      await admin.post(`/application/${api}/deploymentRestriction`, { mode: 'MATCH', type: 'PATH', value: 'api' }),
      201,
    );
    git.changes = { author: 'Grace', message: '', paths: ['web/x'] };
    git.asked.length = 0;
    await sql`update git_push set due_at = now()`.execute(app.db);
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: b }]);
    // Its files are those of the push, and its branch has moved already.
    expect(git.asked).toEqual([`changes ${a} ${b}`]);
  });
});

describe('rights', () => {
  test('are those of the last edit, as they are when the push comes', async () => {
    const { admin, environment, hook } = await place();
    const [writer, other] = [await admin.withScope('WRITE'), await admin.withScope('WRITE')];
    await end(environment);
    const api = await applicationIn(writer, environment);
    const kept = await applicationIn(other, environment);
    await sql`delete from api_token where id::text like ${`%`} and name like 'WRITE%' and id = (select last_updated_with from service where id = ${api})`.execute(
      app.db,
    );
    await push(hook, { before: a, after: b });
    const [row] = await applied(admin);
    const found = Object.fromEntries((row!.outcome as any[]).map(({ serviceId, result }) => [serviceId, result]));
    expect(found).toMatchObject({ [api]: 'REFUSED', [kept]: 'DEPLOYED' });
    expect(Object.keys((await requested(environment)).at(-1)!)).not.toContain(api);
    expect(await newestOf(api)).toBe(b);
    // Somebody who may deploy saves it again.
    ok(await admin.put(`/application/${api}`, { description: 'mine' }), 200);
    await push(hook, { before: b, after: c });
    await applied(admin);
    expect(Object.keys((await requested(environment)).at(-1)!)).toContain(api);
  });

  test('of a member who became a viewer are gone', async () => {
    const { admin, environment, hook } = await place();
    const viewer = (await app.db.selectFrom('role').select('id').where('organization_id', '=', admin.organizationId).where('name', 'ilike', 'viewer').executeTakeFirst())?.id; // prettier-ignore
    await sql`update member set role_id = ${viewer} where user_id = ${admin.userId}`.execute(app.db);
    await push(hook, { before: a, after: b });
    expect(await resultsOf(admin)).toEqual([['REFUSED']]);
    expect(await requested(environment)).toEqual([]);
  });
});

describe('each kind with auto_deploy', () => {
  test('is deployed, planned or noted as its configuration says', async () => {
    const { admin, environment, web, hook } = await place();
    const git_repository = { url: SHOP, branch: 'main' };
    const make = async (kind: string, body: object) =>
      ok(await admin.post(`/environment/${environment}/${kind}`, { name: newId(), ...body }), 201).id as string;
    const job = await make('job', {
      auto_deploy: true,
      source: { docker: { git_repository } },
      schedule: { on_start: {} },
    });
    const values = { url: 'https://git.invalid/acme/values.git', branch: 'main' };
    const helm = await make('helm', {
      auto_deploy: true,
      source: { git_repository },
      values_override: { file: { git: { git_repository: values, paths: ['values.yaml'] } } },
    });
    const terraform = (terraform_action: string) =>
      make('terraform', {
        auto_deploy_config: { auto_deploy: true, terraform_action },
        terraform_files_source: { git_repository },
        terraform_variables_source: { tf_var_file_paths: [], tf_vars: [] },
        backend: { kubernetes: {} },
        engine: 'TERRAFORM',
        provider_version: { read_from_terraform_block: false, explicit_version: '1.13.0' },
        job_resources: { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 1 },
      });
    const [applies, plans, notes] = [await terraform('DEFAULT'), await terraform('PLAN'), await terraform('NOOP')];
    await push(hook, { before: a, after: b });
    await applied(admin);
    expect(await requested(environment)).toEqual([{ [web]: b, [job]: b, [helm]: b, [applies]: b }, { [plans]: b }]);
    expect(await deployments(environment)).toMatchObject([{ action: 'DEPLOY' }, { action: 'RUN', automatic: true }]);
    expect(await newestOf(notes)).toBe(b);
    const second = await webhookOf(admin, 'git.invalid/acme/values');
    await push(second, { before: a, after: c });
    await applied(admin);
    const { snapshot } = (await deployments(environment))[0]!;
    const frozen = (snapshot as any).services.find((one: any) => one.serviceId === helm);
    // The commit of the chart, which still waits, stays.
    expect(frozen).toMatchObject({ commitId: b, valuesCommitId: c });
  });
});
