import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { EXAMPLE, useEngine } from '#test/harness/engine.ts';
import { BUILT, deploy, executionsOf, logOf, makeEnvironment, makeJob, order } from './job.fixture.ts';

const app = useApp();
const engine = useEngine(app);
const OUTPUT = '/quarterdeck-output/output.json';
const CRON = { cronjob: { scheduled_at: '*/5 * * * *', timezone: 'Europe/Paris', arguments: ['report'] } };

describe('what a job may be', () => {
  test('has the defaults of the reference, and one source without the other', async () => {
    const admin = await app.organization();
    const { body } = await makeJob(admin, {
      schedule: { on_start: { arguments: ['migrate'], entrypoint: 'bin/run' } },
    });
    expect(body).toMatchObject({
      job_type: 'LIFECYCLE',
      service_type: 'JOB',
      cpu: 500,
      memory: 512,
      maximum_cpu: 500,
      max_nb_restart: 0,
      max_duration_seconds: 300,
      port: null,
      auto_deploy: false,
      healthchecks: {},
      schedule: { on_start: { arguments: ['migrate'], entrypoint: 'bin/run' }, lifecycle_type: 'GENERIC' },
      source: { docker: { git_repository: { url: EXAMPLE }, dockerfile_path: 'Dockerfile', dockerfile_raw: null } },
    });
    expect(Object.keys(body.source)).toEqual(['docker']);
    expect(Object.keys(body.schedule).sort()).toEqual(['lifecycle_type', 'on_start']);
  });

  test('keeps what an edit leaves out, and can become a cron job', async () => {
    const admin = await app.organization();
    const { url, body } = await makeJob(admin, { max_nb_restart: 3, port: 8080 });
    const edited = ok(
      await admin.put(url, { name: body.name, schedule: CRON, source: { docker: { dockerfile_path: 'other' } } }),
      200,
    );
    expect(edited).toMatchObject({ job_type: 'CRON', schedule: CRON, max_nb_restart: 3, port: 8080 });
    expect(Object.keys(edited.schedule)).toEqual(['cronjob']);
    expect(edited.source.docker).toMatchObject({
      git_repository: { url: EXAMPLE, branch: 'HEAD' },
      dockerfile_path: 'other',
    });
    const raw = ok(await admin.put(url, { source: { docker: { dockerfile_raw: 'FROM scratch' } } }), 200);
    expect(raw.source.docker).toMatchObject({ dockerfile_path: null, dockerfile_raw: 'FROM scratch' });
  });

  test.each([
    ['no source', { source: undefined }, 'source'],
    ['both sources', { source: { ...BUILT, image: { image_name: 'a', tag: '1', registry_id: newId() } } }, 'source'],
    ['an image without a tag', { source: { image: { image_name: 'a', registry_id: newId() } } }, 'source.image.tag'],
    [
      'a registry of somebody else',
      { source: { image: { image_name: 'a', tag: '1', registry_id: newId() } } },
      'source.image.registry_id',
    ],
    ['no repository', { source: { docker: { dockerfile_raw: 'FROM scratch' } } }, 'source.docker.git_repository'],
    [
      'a token of somebody else',
      { source: { docker: { git_repository: { url: EXAMPLE, git_token_id: newId() } } } },
      'source.docker.git_repository.git_token_id',
    ],
    [
      'a Dockerfile named and given',
      { source: { docker: { ...BUILT.docker, dockerfile_raw: 'FROM scratch' } } },
      'source.docker.dockerfile_raw',
    ],
    [
      'a Dockerfile outside',
      { source: { docker: { ...BUILT.docker, dockerfile_path: '../Dockerfile' } } },
      'source.docker.dockerfile_path',
    ],
    ['no schedule', { schedule: undefined }, 'schedule'],
    ['an empty schedule', { schedule: { lifecycle_type: 'GENERIC' } }, 'schedule'],
    ['events of a cron job', { schedule: { ...CRON, on_stop: {} } }, 'schedule.on_stop'],
    ['no cron expression', { schedule: { cronjob: { scheduled_at: 'often' } } }, 'schedule.cronjob.scheduled_at'],
    [
      'no time zone',
      { schedule: { cronjob: { scheduled_at: '@daily', timezone: 'Mars/Olympus' } } },
      'schedule.cronjob.timezone',
    ],
    ['a negative number of restarts', { max_nb_restart: -1 }, 'max_nb_restart'],
    [
      'a probe without a program',
      { healthchecks: { liveness_probe: { type: { exec: { command: [] } } } } },
      'healthchecks.liveness_probe.type.exec.command',
    ],
  ])('is refused with %s', async (_, change, field) => {
    const admin = await app.organization();
    const environmentId = await makeEnvironment(admin);
    const body = { name: 'job', source: BUILT, schedule: { on_start: {} }, ...change };
    const answer = ok(await admin.post(`/environment/${environmentId}/job`, body), 400);
    expect(answer.errors.map((error: { field: string }) => error.field)).toEqual([field]);
  });
});

describe('a lifecycle job', () => {
  test('runs its event at a deploy, with its arguments and variables, and is deployed at a good end', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, {
      schedule: { on_start: { arguments: ['up'], entrypoint: 'node "a b"' } },
      max_duration_seconds: 77,
    });
    ok(await admin.post(`${job.url}/secret`, { key: 'TOKEN', value: 'sesame-open' }), 201);
    order(engine, job, { lines: ['begins with sesame-open', 'ends'] });
    const status = await deploy(job);
    expect(status).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'UP_TO_DATE', status: 'RUNNING' });
    expect(status.steps.details.map((step: any) => step.step_name)).toEqual([
      'GIT_CLONE',
      'BUILD_QUEUEING',
      'BUILD',
      'EXECUTING',
    ]);
    const [spec] = engine.runtime.tasksOf(job.id);
    expect(spec).toMatchObject({
      arguments: ['up'],
      entrypoint: ['node', 'a b'],
      timeoutSeconds: 77,
      outputPath: OUTPUT,
    });
    expect(spec!.environment.TOKEN).toBe('sesame-open');
    const [execution] = await executionsOf(job);
    expect(execution).toMatchObject({
      event: 'START',
      state: 'SUCCEEDED',
      attempts: 1,
      exit_code: 0,
      error: null,
      deployment_request_id: status.deployment_request_id,
      execution_id: status.execution_id,
    });
    expect(await logOf(job, execution.id)).toEqual(['begins with ***', 'ends']);
    const newest = ok(await admin.get(`${job.url}/log?tail=1`), 200).results;
    expect(newest).toMatchObject([{ message: 'ends' }]);
    await engine.executions.sweep();
    expect(engine.runtime.leftovers({ serviceId: job.id } as never).filter((left) => left.includes('task'))).toEqual(
      [],
    );
  });

  test('shows EXECUTING while it runs, and cancelled it is ended', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    order(engine, job, { seconds: null });
    ok(await admin.post(`${job.url}/deploy`), 200);
    await expect
      .poll(async () => ok(await admin.get(`${job.url}/status`), 200))
      .toMatchObject({
        state: 'EXECUTING',
        status_details: { action: 'DEPLOY', status: 'EXECUTING' },
      });
    await expect.poll(() => executionsOf(job)).toMatchObject([{ state: 'RUNNING', ended_at: null }]);
    ok(await admin.post(`/environment/${job.environmentId}/cancelDeployment?wait=30`, {}), 200);
    expect(ok(await admin.get(`${job.url}/status`), 200)).toMatchObject({
      state: 'CANCELED',
      service_deployment_status: 'NEVER_DEPLOYED',
    });
    expect(await executionsOf(job)).toMatchObject([{ state: 'CANCELED' }]);
  });

  test('is ended with force at once, and its run is shown as cut off', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    order(engine, job, { seconds: null }, {});
    ok(await admin.post(`${job.url}/deploy`), 200);
    await expect.poll(async () => ok(await admin.get(`${job.url}/status`), 200).state).toBe('EXECUTING');
    await expect.poll(() => engine.runtime.tasksOf(job.id).length).toBe(1);
    ok(await admin.post(`/environment/${job.environmentId}/cancelDeployment`, { force_cancel: true }), 200);
    expect(await executionsOf(job)).toMatchObject([{ state: 'CANCELED' }]);
    expect(await deploy(job)).toMatchObject({ state: 'DEPLOYED' });
  });

  test('is tried again as often as it may, and fails with the status of the last attempt', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, { max_nb_restart: 2 });
    order(engine, job, { exitCode: 4, lines: ['no'] }, { exitCode: 5 }, { exitCode: 6 });
    expect(await deploy(job)).toMatchObject({ state: 'DEPLOYMENT_ERROR', service_deployment_status: 'NEVER_DEPLOYED' });
    const [execution] = await executionsOf(job);
    expect(execution).toMatchObject({
      state: 'FAILED',
      attempts: 3,
      exit_code: 6,
      error: expect.stringContaining('status 6'),
    });
    expect(await logOf(job, execution.id)).toContain('no');
    order(engine, job, { exitCode: 1 }, {});
    expect(await deploy(job)).toMatchObject({ state: 'DEPLOYED' });
    expect(await executionsOf(job)).toMatchObject([{ state: 'SUCCEEDED', attempts: 2 }, { state: 'FAILED' }]);
  });

  test('that takes longer than it may is ended', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, { max_duration_seconds: 1 });
    order(engine, job, { seconds: null });
    expect(await deploy(job)).toMatchObject({ state: 'DEPLOYMENT_ERROR' });
    expect(await executionsOf(job)).toMatchObject([
      { state: 'FAILED', reason: 'timeout', exit_code: null, error: expect.stringContaining('1 seconds') },
    ]);
  });

  test('whose end cannot be known has failed, and is not tried again', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, { max_nb_restart: 5 });
    order(engine, job, { reason: 'lost' });
    expect(await deploy(job)).toMatchObject({ state: 'DEPLOYMENT_ERROR' });
    expect(await executionsOf(job)).toMatchObject([{ state: 'FAILED', reason: 'lost', attempts: 1 }]);
  });

  test('runs its events at stop and delete with the image of its release, whatever is configured since', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, {
      schedule: { on_start: {}, on_stop: { arguments: ['down'] }, on_delete: { arguments: ['destroy'] } },
    });
    await deploy(job);
    const image = engine.runtime.tasksOf(job.id)[0]!.image;
    ok(await admin.put(job.url, { source: { docker: { dockerfile_raw: 'FROM scratch' } } }), 200);
    expect(ok(await admin.post(`${job.url}/stop?wait=30`), 200)).toMatchObject({ state: 'STOPPED', status: 'STOPPED' });
    expect(engine.runtime.tasksOf(job.id).at(-1)).toMatchObject({ arguments: ['down'], image });
    order(engine, job, { exitCode: 1 }, {});
    ok(await admin.delete(job.url), 204);
    await expect.poll(async () => ok(await admin.get(`${job.url}/status`), 200).state).toBe('DELETE_ERROR');
    ok(await admin.delete(job.url), 204);
    await expect.poll(async () => (await admin.get(job.url)).status).toBe(404);
    expect(engine.runtime.tasksOf(job.id).at(-1)).toMatchObject({ arguments: ['destroy'], image });
    expect(engine.runtime.leftovers({ serviceId: job.id } as never)).toEqual([]);
  });

  test('that was never deployed runs nothing when it is stopped or deleted', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, { schedule: { on_stop: {}, on_delete: {} } });
    expect(ok(await admin.post(`${job.url}/stop?wait=30`), 200)).toMatchObject({ state: 'STOPPED' });
    ok(await admin.delete(job.url), 204);
    ok(await admin.get(job.url), 404);
    expect(engine.runtime.tasksOf(job.id)).toEqual([]);
  });
});

describe('one event of a job', () => {
  test('is run alone, and leaves the job as it was', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, { schedule: { on_start: {}, on_stop: { arguments: ['down'] } } });
    await deploy(job);
    expect(ok(await admin.put(job.url, { cpu: 250 }), 200).cpu).toBe(250);
    const status = await deploy(job, '&forceEvent=STOP');
    expect(status).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'OUT_OF_DATE' });
    expect(engine.runtime.tasksOf(job.id).at(-1)).toMatchObject({ arguments: ['down'], resources: { cpuMilli: 250 } });
    expect((await executionsOf(job)).map((one: any) => one.event)).toEqual(['STOP', 'START']);
    expect(ok(await admin.post(`${job.url}/redeploy?forceEvent=START&wait=30`), 200)).toMatchObject({
      service_deployment_status: 'OUT_OF_DATE',
    });
    order(engine, job, { exitCode: 1 });
    expect(await deploy(job, '&forceEvent=STOP')).toMatchObject({ state: 'DEPLOYMENT_ERROR' });
    const events = await app.db
      .selectFrom('audit_event')
      .select('event_type')
      .where('target_id', '=', job.id)
      .orderBy('id')
      .execute();
    expect(events.map((event) => event.event_type).slice(-3)).toEqual([
      'TRIGGER_FORCE_RUN_STOP',
      'FORCE_RUN_QUEUED_STOP',
      'FORCE_RUN_FAILED',
    ]);
  });

  test('that it does not have is answered with the unchanged status, and nothing is requested', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    const before = ok(await admin.get(`${job.url}/status`), 200);
    for (const call of ['deploy', 'redeploy'])
      for (const event of ['STOP', 'DELETE', 'CRON'])
        expect(ok(await admin.post(`${job.url}/${call}?forceEvent=${event}`), 200)).toEqual(before);
    ok(await admin.post(`${job.url}/deploy?forceEvent=NEVER`), 400);
    const { results } = ok(await admin.get(`${job.url}/deploymentHistory`), 200);
    expect(results).toEqual([]);
  });

  test('of one that was never deployed is run, and deploys nothing', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, { schedule: CRON });
    expect(await deploy(job, '&forceEvent=CRON')).toMatchObject({ service_deployment_status: 'NEVER_DEPLOYED' });
    expect(engine.runtime.tasksOf(job.id)).toMatchObject([{ arguments: ['report'], outputPath: null }]);
    ok(await admin.delete(job.url), 204);
    await expect.poll(async () => (await admin.get(job.url)).status).toBe(404);
    expect(engine.runtime.leftovers({ serviceId: job.id } as never)).toEqual([]);
  });
});

describe('what a job writes', () => {
  const variablesOf = async (admin: any, environmentId: string) => {
    const variables = ok(await admin.get(`/environment/${environmentId}/environmentVariable`), 200).results;
    const secrets = ok(await admin.get(`/environment/${environmentId}/secret`), 200).results;
    return [...variables, ...secrets].filter(({ scope }: any) => scope === 'ENVIRONMENT');
  };

  test('becomes variables, secrets and files of its environment, which later stages have', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    const reader = await makeJob(admin, {}, job.environmentId);
    const stages = ok(await admin.get(`/environment/${job.environmentId}/deploymentStage`), 200).results;
    ok(await admin.put(`/deploymentStage/${stages.at(-1).id}/service/${reader.id}`), 200);
    const output = {
      PLAIN: 'text',
      NUMBER: { value: 5432, type: 'number' },
      PASSWORD: { value: 'hunter-22', sensitive: true, description: 'of the database' },
      CERTIFICATE: { value: '-----', mount_path: '/etc/ca.pem', sensitive: false },
    };
    order(engine, job, { output: JSON.stringify(output) });
    order(engine, reader, { lines: ['it is hunter-22'] });
    expect(ok(await admin.post(`/environment/${job.environmentId}/deploy?wait=30`), 200).state).toBe('DEPLOYED');
    const records = await variablesOf(admin, job.environmentId);
    expect(records.sort((a: any, b: any) => a.key.localeCompare(b.key))).toMatchObject([
      { key: 'CERTIFICATE', value: '-----', mount_path: '/etc/ca.pem', variable_type: 'FILE' },
      { key: 'NUMBER', value: '5432' },
      { key: 'PASSWORD', description: 'of the database' },
      { key: 'PLAIN', value: 'text' },
    ]);
    expect(JSON.stringify(records)).not.toContain('hunter-22');
    const [spec] = engine.runtime.tasksOf(reader.id);
    expect(spec!.environment).toMatchObject({ PLAIN: 'text', NUMBER: '5432', PASSWORD: 'hunter-22' });
    expect(spec!.files).toEqual([{ path: '/etc/ca.pem', content: '-----' }]);
    expect(await logOf(reader, (await executionsOf(reader))[0].id)).toEqual(['it is ***']);
    // What was not written again goes; an execution without a file changes nothing.
    order(engine, job, { output: '{"PLAIN": "other"}' }, {});
    await deploy(job);
    await deploy(job);
    expect(await variablesOf(admin, job.environmentId)).toMatchObject([{ key: 'PLAIN', value: 'other' }]);
    ok(await admin.delete(job.url), 204);
    await expect.poll(async () => (await admin.get(job.url)).status).toBe(404);
    expect(await variablesOf(admin, job.environmentId)).toEqual([]);
  });

  test('of a cloned environment is what its own job writes', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    order(engine, job, { output: '{"PLAIN": "first", "PASSWORD": {"value": "hunter-22", "sensitive": true}}' });
    await deploy(job);
    const clone = ok(await admin.post(`/environment/${job.environmentId}/clone`, { name: 'other' }), 201).id;
    const [copy] = ok(await admin.get(`/environment/${clone}/job`), 200).results;
    const at = { admin, id: copy.id, url: `/job/${copy.id}`, environmentId: clone, body: copy };
    order(engine, at, { output: '{"PLAIN": "second"}' });
    await deploy(at);
    expect(await variablesOf(admin, clone)).toMatchObject([{ key: 'PLAIN', value: 'second' }]);
    expect((await variablesOf(admin, job.environmentId)).map(({ key, value }: any) => [key, value])).toEqual(
      expect.arrayContaining([['PLAIN', 'first']]),
    );
  });

  test.each([
    ['{"A": "b",\n "C": }', `${OUTPUT}: it is not JSON: line 2, column 7`],
    ['["A"]', `${OUTPUT}: it must be a JSON object`],
    ['{"A": {"text": "b"}}', `${OUTPUT}: "A": "value" is missing`],
    ['{"A": {"value": "b", "sensitive": "yes"}}', `${OUTPUT}: "A": "sensitive" must be true or false`],
    ['{"A": {"value": "b", "secret": true}}', `${OUTPUT}: "A": "secret" is not allowed here`],
    ['{"A": null}', `${OUTPUT}: "A" has no value`],
    ['{"not a key": "b"}', `${OUTPUT}: key: must begin with a letter`],
    ['{"A": {"value": "b", "mount_path": "relative"}}', `${OUTPUT}: mount_path: must be absolute`],
  ])('fails the deployment where it is wrong: %s', async (output, message) => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    order(engine, job, { output });
    expect(await deploy(job)).toMatchObject({ state: 'DEPLOYMENT_ERROR' });
    expect(await executionsOf(job)).toMatchObject([
      { state: 'FAILED', exit_code: 0, error: expect.stringContaining(message) },
    ]);
    expect(await variablesOf(admin, job.environmentId)).toEqual([]);
  });
});

describe('what failed runs left', () => {
  test('stays in the runtime until it is cleaned, and goes with the records', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin, { max_nb_restart: 1 });
    order(engine, job, { exitCode: 1 });
    await deploy(job);
    await engine.executions.sweep();
    const left = () => engine.runtime.leftovers({ serviceId: job.id } as never).filter((one) => /start/.test(one));
    expect(left()).toHaveLength(2);
    const reader = await admin.withScope('READ');
    ok(await reader.post(`${job.url}/cleanFailedJob`), 403);
    const answer = ok(await admin.post(`${job.url}/cleanFailedJob`), 200);
    expect(answer.clean_kubernetes_jobs).toHaveLength(2);
    expect(await executionsOf(job)).toEqual([]);
    await engine.executions.sweep();
    expect(left()).toEqual([]);
    expect(await app.db.selectFrom('job_execution').select('id').where('service_id', '=', job.id).execute()).toEqual(
      [],
    );
    expect(ok(await admin.post(`${job.url}/cleanFailedJob`), 200)).toEqual({ clean_kubernetes_jobs: [] });
  });

  test('is cleaned for an environment too', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    order(engine, job, { exitCode: 1 });
    await deploy(job);
    const answer = ok(await admin.post(`/environment/${job.environmentId}/cleanFailedJobs`, {}), 200);
    expect(answer).toEqual({
      clean_job_ids: [job.id],
      clean_kubernetes_jobs: [expect.stringMatching(/^start-\d+-1$/)],
    });
    expect(await executionsOf(job)).toEqual([]);
  });
});

test('runs of another organization are not there', async () => {
  const [admin, stranger] = [await app.organization(), await app.organization()];
  const [job, other] = [await makeJob(admin), await makeJob(admin)];
  await deploy(job);
  const [execution] = await executionsOf(job);
  for (const path of ['execution', `execution/${execution.id}/log`]) ok(await stranger.get(`${job.url}/${path}`), 404);
  ok(await stranger.post(`${job.url}/cleanFailedJob`), 404);
  ok(await admin.get(`${other.url}/execution/${execution.id}/log`), 404);
  ok(await admin.get(`${job.url}/execution/nonsense/log`), 404);
});
