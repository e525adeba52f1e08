import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';
import { EXAMPLE, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

async function makeEnvironment() {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
  return { admin, url: `/environment/${environment.id}` };
}

/** Returns the program that the Dockerfile writes, as the shell reads it. */
function programOf(dockerfile: string): string {
  const [, written] = /^RUN (printf [^]*?) {2}> \/usr/m.exec(dockerfile)!;
  const printed = spawnSync('sh', ['-c', written!.replaceAll('\\\n', ' ')], { encoding: 'utf8' });
  expect(printed.stderr).toBe('');
  return printed.stdout;
}

test('every template makes a job that can be deployed, with a program that a shell can read', async () => {
  const { admin, url } = await makeEnvironment();
  const { results } = ok(await admin.get(`${url}/lifecycleTemplate`), 200);
  expect(results.map(({ name }: any) => name)).toEqual(['Script', 'PostgreSQL seed', 'Terraform', 'CloudFormation']);
  for (const { id, name } of results) {
    const template = ok(await admin.get(`${url}/lifecycleTemplate/${id}`), 200);
    const program = programOf(template.dockerfile);
    expect(program).toMatch(/^#!\/bin\/sh\nset -eu\n/);
    const read = spawnSync('sh', ['-n'], { input: program, encoding: 'utf8' });
    expect(read, name).toMatchObject({ status: 0, stderr: '' });
    const job = ok(
      await admin.post(`${url}/job`, {
        name,
        healthchecks: {},
        max_duration_seconds: template.max_duration_in_sec,
        cpu: template.resources.cpu_milli,
        memory: template.resources.ram_mib,
        schedule: Object.fromEntries(
          template.events.map((event: any) => [
            `on_${event.name}`,
            { arguments: event.command, entrypoint: event.entrypoint },
          ]),
        ),
        source: { docker: { git_repository: { url: EXAMPLE, branch: 'HEAD' }, dockerfile_raw: template.dockerfile } },
      }),
      201,
    );
    for (const { name: key, default: value, is_secret, file } of template.variables)
      ok(
        await admin.post('/variable', {
          key,
          value,
          is_secret,
          ...(file ? { mount_path: file.path, enable_interpolation_in_file: file.enable_interpolation } : {}),
          variable_scope: 'JOB',
          variable_parent_id: job.id,
        }),
        201,
      );
    expect(ok(await admin.post(`/job/${job.id}/deploy?wait=30`), 200), name).toMatchObject({ state: 'DEPLOYED' });
    const [task] = engine.runtime.tasksOf(job.id);
    expect(task).toMatchObject({ arguments: ['start'] });
    if (program.includes('output')) expect(program).toContain(task!.outputPath);
  }
});

test('the one of scripts runs the script of the event, and says where there is none', async () => {
  const { admin, url } = await makeEnvironment();
  const [first] = ok(await admin.get(`${url}/lifecycleTemplate`), 200).results;
  const { dockerfile } = ok(await admin.get(`${url}/lifecycleTemplate/${first.id}`), 200);
  const { status, stderr } = spawnSync('sh', ['-s', 'never'], {
    input: programOf(dockerfile)
      .replaceAll('/data/', './')
      .replaceAll('/quarterdeck-output', '/tmp/quarterdeck-output'),
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  });
  expect({ status, stderr }).toEqual({ status: 2, stderr: 'Unknown event: never\n' });
});

test('a template that is not there is 404, and so is one of an environment of somebody else', async () => {
  const { admin, url } = await makeEnvironment();
  const [first] = ok(await admin.get(`${url}/lifecycleTemplate`), 200).results;
  ok(await admin.get(`${url}/lifecycleTemplate/none`), 404);
  const stranger = await app.organization();
  ok(await stranger.get(`${url}/lifecycleTemplate`), 404);
  ok(await stranger.get(`${url}/lifecycleTemplate/${first.id}`), 404);
});
