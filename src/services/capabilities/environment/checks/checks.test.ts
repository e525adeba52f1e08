import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import type { RegistryAccess } from '#platform/oci/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const root = makeRepositoryRoot();
afterAll(() => root.remove());
const registries = new Map<string, RegistryAccess>();
const app = useApp(
  { QUARTERDECK_LOCAL_GIT_ROOTS: root.folder, QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' },
  { findRegistry: async (_context, organizationId, id) => registries.get(`${organizationId}/${id}`) },
);

async function makeEnvironment(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  return ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201).id as string;
}

let admin: Actor;
let environment: string;
beforeEach(async () => {
  admin = await app.organization();
  environment = `/environment/${await makeEnvironment(admin)}`;
});

describe('the check of a Dockerfile', () => {
  test('reads it from the branch, below root_path, and answers what it needs', async () => {
    const repository = root.make();
    repository.commit({ 'api/Dockerfile': 'ARG V=20\nFROM node:${V}\nARG TOKEN\n', Dockerfile: 'FROM other\n' });
    const body = {
      git_repository: { url: repository.url, branch: 'main', root_path: '/api' },
      dockerfile_path: 'Dockerfile',
    };
    expect(ok(await admin.post(`${environment}/checkDockerfile`, body), 200)).toEqual({
      dockerfile_path: 'Dockerfile',
      arg: ['V', 'TOKEN'],
      repositories: ['node'],
    });
  });

  test('refuses what is not there or not one, naming the field', async () => {
    const repository = root.make();
    repository.commit({ 'README.md': 'nothing', Dockerfile: 'FROM a' });
    const from = (git_repository: object, dockerfile_path: string) =>
      admin.post(`${environment}/checkDockerfile`, { git_repository, dockerfile_path });
    const git = { url: repository.url };
    for (const [answer, field, text] of [
      [await from(git, 'build/Dockerfile'), 'dockerfile_path', 'has no file build/Dockerfile'],
      [await from(git, 'README.md'), 'dockerfile_path', 'has no FROM'],
      [await from(git, '../Dockerfile'), 'dockerfile_path', 'stay within the repository'],
      [await from({ ...git, root_path: '/..' }, 'Dockerfile'), 'git_repository.root_path', 'stay within'],
      [await from({ ...git, git_token_id: newId() }, 'Dockerfile'), 'git_repository.git_token_id', 'no git token'],
    ] as const)
      expect(answer).toMatchObject({
        status: 400,
        body: { errors: [{ field, message: expect.stringContaining(text) }] },
      });
    const branch = await from({ ...git, branch: 'missing' }, 'Dockerfile');
    expect([branch.status, branch.body.message]).toEqual([400, expect.stringContaining('has no branch')]);
    expect((await from({ url: '/etc' }, 'Dockerfile')).status).toBe(400);
    expect((await from({ url: 'http://127.0.0.1:1/a/b.git' }, 'Dockerfile')).status).toBe(502);
  });

  test('takes what making a service takes, in an environment of the caller', async () => {
    const stranger = await app.organization();
    const body = { git_repository: { url: root.make().url }, dockerfile_path: 'Dockerfile' };
    expect((await stranger.post(`${environment}/checkDockerfile`, body)).status).toBe(404);
    expect((await (await admin.withScope('READ')).post(`${environment}/checkDockerfile`, body)).status).toBe(403);
  });
});

describe('the Dockerfile that is made', () => {
  const site = { 'index.html': '<p>', 'app/package.json': '{"main":"server.js"}', 'app/server.js': '' };

  test('is that of the project below root_path, for the port', async () => {
    const repository = root.make();
    repository.commit({ ...site, 'app/.dockerignore': 'x' });
    const make = (git: object, more: object = {}) =>
      admin.post(`${environment}/generateDockerfile`, { git_repository: { url: repository.url, ...git }, ...more });
    expect(ok(await make({}), 200)).toEqual({
      language: 'STATIC',
      recognised_by: 'index.html: files for browsers',
      dockerfile: expect.stringContaining('ENV PORT=8080\n'),
      dockerignore: expect.stringContaining('.git\n'),
      root_path: '/',
      dockerfile_path: 'Dockerfile',
      used_dockerfile: null,
    });
    const below = ok(await make({ root_path: '/app' }, { port: 4000 }), 200);
    expect(below).toMatchObject({ language: 'NODE', dockerignore: null });
    expect(below.dockerfile).toContain('ENV PORT=4000\n');
  });

  test('names the Dockerfile of the repository that services use instead', async () => {
    const repository = root.make();
    repository.commit({ ...site, 'app/Dockerfile': 'FROM a\n', 'docs/Dockerfile': 'FROM a\n' });
    const make = (root_path: string) =>
      admin.post(`${environment}/generateDockerfile`, { git_repository: { url: repository.url, root_path } });
    expect(ok(await make('/'), 200).used_dockerfile).toBeNull();
    const below = ok(await make('/app'), 200);
    expect(below).toMatchObject({ used_dockerfile: 'app/Dockerfile', dockerfile: expect.stringContaining('FROM') });
    expect(ok(await make('docs'), 400).message).toContain(
      'Services use docs/Dockerfile, which the repository has; none can be made. No project is recognised there',
    );
  });

  test('is that of a job, which has no port and may name its command itself', async () => {
    const repository = root.make();
    repository.commit({ ...site, Procfile: 'release: node migrate.js\n', 'package.json': '{}', 'web/index.php': '' });
    const make = (body: object, root_path = '/') =>
      admin.post(`${environment}/generateDockerfile`, { git_repository: { url: repository.url, root_path }, ...body });
    const lifecycle = ok(await make({ job_type: 'LIFECYCLE' }), 200).dockerfile;
    expect(lifecycle).toContain('exec node migrate.js');
    expect(lifecycle).not.toContain('PORT');
    expect(ok(await make({ job_type: 'CRON' }), 400).message).toContain('a line "job: …"');
    expect(ok(await make({ job_type: 'CRON', has_command: true }), 200).dockerfile).not.toContain('CMD');
    expect(ok(await make({ job_type: 'CRON' }, '/web'), 400).message).toContain('which is a server');
    const refused = ok(await make({ job_type: 'CRON', port: 80 }), 400);
    expect(refused.errors).toEqual([{ field: 'port', message: 'is not allowed here: a job has no port' }]);
    expect((await make({ job_type: 'WEEKLY' })).status).toBe(400);
  });

  test('of what is not recognised, or cannot be read, is 400 with what would help', async () => {
    const repository = root.make();
    repository.commit({ 'README.md': '', 'broken/package.json': '{', 'unclear/package.json': '{}' });
    const make = (root_path: string, more: object = {}) =>
      admin.post(`${environment}/generateDockerfile`, { git_repository: { url: repository.url, root_path }, ...more });
    const field = 'git_repository';
    const said = (text: string) => ({ status: 400, body: { message: expect.stringContaining(text) } });
    expect(await make('/')).toMatchObject({
      ...said('No project is recognised there'),
      body: { errors: [{ field, message: expect.stringContaining('No project is recognised there') }] },
    });
    expect(await make('/unclear')).toMatchObject(said('add a script "start" to package.json'));
    expect(await make('/broken')).toMatchObject(said('package.json: it is not JSON'));
    expect(await make('/nowhere')).toMatchObject(said('No project is recognised there'));
    expect(await make('/..')).toMatchObject(said('stay within the repository'));
    for (const port of [0, 65_536, 'x']) expect((await make('/', { port })).status).toBe(400);
  });

  test('takes what making a service takes, in an environment of the caller', async () => {
    const stranger = await app.organization();
    const repository = root.make();
    repository.commit(site);
    const body = { git_repository: { url: repository.url } };
    expect((await stranger.post(`${environment}/generateDockerfile`, body)).status).toBe(404);
    const reader = await admin.withScope('READ');
    expect((await reader.post(`${environment}/generateDockerfile`, body)).status).toBe(403);
  });
});

describe('the check of files', () => {
  test('passes when the branch has all of them, and names each that it has not', async () => {
    const repository = root.make();
    repository.commit({ 'values/a.yaml': '', 'values/b.yaml': '' });
    const git_repository = { url: repository.url, root_path: 'values' };
    const check = (files: string[]) => admin.post(`${environment}/checkGitFile`, { git_repository, files });
    expect(ok(await check(['a.yaml', '/b.yaml']), 200)).toEqual({});
    expect((await check(['a.yaml', 'c.yaml', 'values/a.yaml'])).body.errors).toEqual([
      { field: 'files[1]', message: 'branch main has no file values/c.yaml' },
      { field: 'files[2]', message: 'branch main has no file values/values/a.yaml' },
    ]);
    expect((await check([])).status).toBe(400);
  });
});

describe('the check of a Helm chart in a repository', () => {
  test.each([
    ['a chart', 'apiVersion: v2\nname: web\nversion: 1.0\n', 200, ''],
    ['a description without a version', 'apiVersion: v2\nname: web\n', 400, 'has no version'],
    ['a list', '- a\n', 400, 'has no apiVersion'],
    ['no YAML', 'a: [', 400, 'is not YAML'],
    ['a bomb of aliases', `a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]\n`, 400, 'is not YAML'],
  ])('of %s is decided by its content', async (_what, content, status, text) => {
    const repository = root.make();
    repository.commit({ 'chart/Chart.yaml': content });
    const body = { git_repository: { url: repository.url, root_path: '/chart' } };
    const answer = await admin.post(`${environment}/checkHelmRepository`, body);
    expect([answer.status, answer.body.message ?? '']).toEqual([status, expect.stringContaining(text)]);
  });

  test('refuses a folder without one', async () => {
    const repository = root.make();
    repository.commit({ 'README.md': '' });
    const answer = await admin.post(`${environment}/checkHelmRepository`, { git_repository: { url: repository.url } });
    expect(answer.body.errors).toEqual([
      { field: 'git_repository.root_path', message: 'branch main has no file Chart.yaml' },
    ]);
  });
});

describe('the check of an image', () => {
  /** A registry with one public image (`open/app:1`) and one that takes a token for user `ada` (`closed/app:1`). */
  let server: Server;
  let host: string;
  const authorizations: string[] = [];
  beforeAll(async () => {
    server = createServer((request, response) => {
      const url = new URL(request.url!, `http://${host}`);
      const { authorization } = request.headers;
      if (authorization) authorizations.push(`${url.pathname} ${authorization}`);
      if (url.pathname === '/token') {
        const good = authorization === `Basic ${Buffer.from('ada:secret').toString('base64')}`;
        const scoped = url.searchParams.get('scope') === 'repository:closed/app:pull';
        return response.writeHead(good && scoped ? 200 : 401).end(JSON.stringify({ token: 'granted' }));
      }
      if (url.pathname === '/v2/open/app/manifests/1') return response.end('{}');
      if (url.pathname === '/v2/ill/app/manifests/1') return response.writeHead(503).end();
      if (url.pathname === '/v2/closed/app/manifests/1' && authorization !== 'Bearer granted')
        return response
          .writeHead(401, {
            'www-authenticate': `Bearer realm="http://${host}/token",service="registry",scope="repository:closed/app:pull"`,
          })
          .end();
      return response.writeHead(url.pathname.startsWith('/v2/closed/') ? 200 : 404).end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const check = (body: object) => admin.post(`${environment}/checkContainerImage`, body);

  test('asks the registry that its name begins with', async () => {
    expect(ok(await check({ image_name: `${host}/open/app`, tag: '1' }), 200)).toEqual({});
    const missing = await check({ image_name: `${host}/open/app`, tag: '2' });
    expect([missing.status, missing.body.message]).toEqual([400, `The registry ${host} has no image open/app:2.`]);
    expect((await check({ image_name: `${host}/ill/app`, tag: '1' })).status).toBe(502);
    expect((await check({ image_name: '127.0.0.1:1/open/app', tag: '1' })).status).toBe(502);
    expect((await check({ image_name: '10.1.1.1:5000/open/app', tag: '1' })).status).toBe(400);
  });

  test('fetches a token with the credentials of the registry, which stand in no answer', async () => {
    const registryId = newId();
    const closed = { registry_id: registryId, image_name: 'closed/app', tag: '1' };
    const anonymous = await check({ image_name: `${host}/closed/app`, tag: '1' });
    expect([anonymous.status, anonymous.body.message]).toEqual([400, expect.stringContaining('does not let us read')]);
    registries.set(`${admin.organizationId}/${registryId}`, {
      organizationId: admin.organizationId,
      url: `http://${host}`,
      credentials: { username: 'ada', password: 'secret' },
    });
    expect(ok(await check(closed), 200)).toEqual({});
    expect(authorizations).toContain('/v2/closed/app/manifests/1 Bearer granted');
    registries.set(`${admin.organizationId}/${registryId}`, {
      organizationId: admin.organizationId,
      url: `http://${host}`,
      credentials: { username: 'ada', password: 'wrong-password' },
    });
    const refused = await check(closed);
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).not.toContain('wrong-password');
  });

  test('refuses a registry of another organization and malformed names, naming the field', async () => {
    const stranger = await app.organization();
    const registryId = newId();
    registries.set(`${stranger.organizationId}/${registryId}`, {
      organizationId: stranger.organizationId,
      url: `http://${host}`,
      credentials: null,
    });
    for (const [body, field] of [
      [{ registry_id: registryId, image_name: 'open/app', tag: '1' }, 'registry_id'],
      [{ image_name: 'a b', tag: '1' }, 'image_name'],
      [{ image_name: 'app', tag: '../x' }, 'tag'],
    ] as const)
      expect(await check(body)).toMatchObject({ status: 400, body: { errors: [{ field }] } });
  });
});
