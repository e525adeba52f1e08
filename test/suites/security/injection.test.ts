import { existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { useHostEngine } from '#test/harness/real-engine.ts';

/**
 * Values that git, a build or a process might take for a command, an option or a path. They go through every field that reaches these, on
 * real parts. A command that runs leaves a file.
 */
const root = makeRepositoryRoot();
const engine: { current?: { runtime: Runtime } } = {};
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: root.folder }, { runtimeOf: async () => engine.current!.runtime });
engine.current = useHostEngine(app, () => undefined);

const owned = path.join(tmpdir(), `qd-owned-${newId()}`);
const run = `touch ${owned}`;
const PAYLOADS = [
  `--upload-pack=${run}`,
  `-c core.sshCommand=${run}`,
  `-oProxyCommand=${run}`,
  `ext::sh -c ${run.replaceAll(' ', '% ')}`,
  `ssh://-oProxyCommand=${encodeURIComponent(run)}/x`,
  `ssh://%2doProxyCommand=${encodeURIComponent(run)}/x`,
  `git@-oProxyCommand=${run}:x`,
  'fd::17/x',
  `$(${run})`,
  `\`${run}\``,
  `; ${run} #`,
  `' ; ${run} ; '`,
  `" && ${run} && "`,
  `| ${run}`,
  `x\n${run}`,
  `x\r\n${run}`,
  `\${IFS}${run}`,
  '/etc',
  'file:///etc',
  '../../../../../../etc',
  '/../../etc/passwd',
  'a/../../../etc/passwd',
  '.git/config',
  'linked/passwd',
  '--',
  '-',
];

const SERVER = `console.log('ARGS ' + JSON.stringify(process.argv.slice(2)));
require('node:http').createServer((_, response) => response.end('ok')).listen(process.env.PORT || 3000);
`;
let admin: Actor;
let repository: ReturnType<typeof root.make>;
beforeAll(async () => {
  repository = root.make('app');
  repository.commit({
    Dockerfile: 'FROM scratch\nWORKDIR /app\nCOPY main.js .\nENTRYPOINT ["node", "main.js"]\n',
    'main.js': SERVER,
  });
  // Symbolic link in the repository to a folder of the machine.
  symlinkSync('/etc', path.join(repository.url, 'linked'));
  repository.commit({ 'b.txt': 'b' });
  admin = await app.organization();
});
afterAll(() => {
  root.remove();
  rmSync(owned, { force: true });
});

const base = () => ({
  git_repository: { url: repository.url, branch: 'main' } as Record<string, unknown>,
  dockerfile_path: 'Dockerfile',
  ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }] as Record<string, unknown>[],
});

/** Fields that reach a program, a build or a path, with the function that puts a value into a service. */
const FIELDS: Record<string, (value: string) => object> = {
  url: (url) => ({ git_repository: { ...base().git_repository, url } }),
  branch: (branch) => ({ git_repository: { ...base().git_repository, branch } }),
  root_path: (root_path) => ({ git_repository: { ...base().git_repository, root_path } }),
  dockerfile_path: (dockerfile_path) => ({ dockerfile_path }),
  docker_target_build_stage: (docker_target_build_stage) => ({ docker_target_build_stage }),
};

describe('a value that is a command, an option or a way out', () => {
  test('is refused or means nothing, in each field that git and builds are given: nothing of it is run or read', async () => {
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
    const taken: { id: string; field: string; payload: string }[] = [];
    for (const [field, bodyWith] of Object.entries(FIELDS))
      for (const [at, payload] of PAYLOADS.entries()) {
        const body = { ...base(), ...bodyWith(payload), name: `${field} ${at}` };
        const answer = await admin.post(`/environment/${environment.id}/application`, body);
        expect([201, 400], `${field} ${payload}: ${JSON.stringify(answer.body)}`).toContain(answer.status);
        if (answer.status === 201) taken.push({ id: answer.body.id, field, payload });
      }
    const asked = taken.filter(({ field }) => field === 'url' || field === 'branch');
    const commits = await Promise.all(asked.map(({ id }) => admin.get(`/application/${id}/commit`)));
    expect(new Set(commits.map(({ status }) => status))).toEqual(new Set([502]));
    ok(await admin.post(`/environment/${environment.id}/deploy?wait=120`), 200);
    for (const { id, field, payload } of taken) {
      const { state } = ok(await admin.get(`/application/${id}/status`), 200);
      expect(['DEPLOYMENT_ERROR', 'BUILD_ERROR', 'CANCELED'], `${field}: ${payload}`).toContain(state);
    }
    const logs = JSON.stringify(ok(await admin.get(`/environment/${environment.id}/logs`), 200));
    expect(logs).not.toContain('root:x:0');
    expect(existsSync(owned)).toBe(false);
    ok(await admin.delete(`/environment/${environment.id}`), 204);
  }, 180_000);

  test('reaches the program as the argument, variable or file that it is, unread by any shell', async () => {
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
    const application = ok(
      await admin.post(`/environment/${environment.id}/application`, {
        ...base(),
        name: `$(${run})`,
        arguments: PAYLOADS,
      }),
      201,
    );
    const url = `/application/${application.id}`;
    for (const [at, value] of PAYLOADS.entries())
      ok(await admin.post(`${url}/environmentVariable`, { key: `PAYLOAD_${at}`, value }), 201);
    ok(await admin.post(`${url}/environmentVariable`, { key: 'LD_PRELOAD', value: `/app/main.js ${run}` }), 201);
    ok(await admin.post(`${url}/environmentVariable`, { key: 'BASH_ENV', value: `$(${run})` }), 201);
    ok(
      await admin.post(`${url}/environmentVariable`, { key: 'FILE', value: `$(${run})`, mount_path: `/app/$(id) -x` }),
      201,
    );
    const status = ok(await admin.post(`${url}/deploy?wait=60`), 200);
    expect(
      status.state,
      JSON.stringify((await admin.get(`/environment/${environment.id}/logs`)).body).slice(-2000),
    ).toBe('DEPLOYED');
    const wanted = JSON.stringify(JSON.stringify(PAYLOADS)).slice(1, -1);
    await expect.poll(async () => JSON.stringify((await admin.get(`${url}/log`)).body)).toContain(wanted);
    expect(existsSync(owned)).toBe(false);
    ok(await admin.delete(url), 204);
    await expect.poll(async () => (await admin.get(url)).status).toBe(404);
  }, 120_000);

  test('is no key of a variable, name of a port, path of a mount or domain', async () => {
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
    const made = ok(await admin.post(`/environment/${environment.id}/application`, { ...base(), name: 'a' }), 201);
    const url = `/application/${made.id}`;
    for (const payload of [...PAYLOADS, 'A=B', 'A B', 'A\0B', '\u202ea']) {
      const refused: [string, object][] = [
        [`${url}/environmentVariable`, { key: payload, value: 'v' }],
        [`${url}/secret`, { key: payload, value: 'v' }],
        [`${url}/customDomain`, { domain: payload, generate_certificate: false }],
        [
          `/environment/${environment.id}/application`,
          { ...base(), name: newId(), ports: [{ ...base().ports[0], name: payload }] },
        ],
        [
          `/environment/${environment.id}/application`,
          { ...base(), name: newId(), storage: [{ type: 'FAST_SSD', size: 1, mount_point: `relative${payload}` }] },
        ],
        [`${url}/environmentVariable`, { key: 'F', value: 'v', mount_path: `relative${payload}` }],
        [`${url}/deploy`, { git_commit_id: payload }],
      ];
      for (const [target, body] of refused)
        expect((await admin.post(target, body)).status, `${target} ${JSON.stringify(body)}`).toBe(400);
    }
    const elsewhere = { readiness_probe: { type: { tcp: { port: 80, host: '169.254.169.254' } } } };
    const probe = { ...base(), name: newId(), healthchecks: elsewhere };
    expect((await admin.post(`/environment/${environment.id}/application`, probe)).body.message).toMatch(
      /tcp.host: must be left out/,
    );
  });
});

test('a repository with links out of it shows nothing of the machine', async () => {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
  const hostname = readFileSync('/etc/passwd', 'utf8').slice(0, 20);
  for (const [root_path, dockerfile_path] of [
    ['/linked', 'passwd'],
    ['/', 'linked/passwd'],
    ['linked/..', 'passwd'],
  ]) {
    const body = { git_repository: { ...base().git_repository, root_path }, dockerfile_path };
    const answer = await admin.post(`/environment/${environment.id}/checkDockerfile`, body);
    expect([400, 502], JSON.stringify(answer.body)).toContain(answer.status);
    expect(JSON.stringify(answer.body)).not.toContain(hostname);
  }
});
