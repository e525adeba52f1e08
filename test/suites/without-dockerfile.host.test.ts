import { get } from 'node:http';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { Program } from '#test/harness/program.ts';

const EXAMPLES = path.join(import.meta.dirname, '../../examples/projects');

/** Examples that need no package of a registry: their answer, and the programs that the machine must have. */
const WANTED: Record<string, { programs: string[]; answer: string }> = {
  go: { programs: ['go'], answer: 'Hello from Go' },
  node: { programs: ['node', 'npm'], answer: 'Hello from Node.js' },
  php: { programs: ['php'], answer: 'Hello from PHP' },
  python: { programs: ['python3'], answer: 'Hello from Python' },
  rust: { programs: ['cargo', 'cc'], answer: 'Hello from Rust' },
  static: { programs: ['caddy'], answer: '<!doctype html>' },
};

let program: Program;
let environment: string;
beforeAll(async () => {
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host' });
  const [organization] = (await program.ask('GET', '/organization')).results;
  const project = await program.ask('POST', `/organization/${organization.id}/project`, { name: 'shop' });
  environment = (await program.ask('POST', `/project/${project.id}/environment`, { name: 'dev' })).id;
});
afterAll(() => program?.close());

function filesOf(folder: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const named = paths.map((entry) => path.join(entry.parentPath, entry.name));
  return Object.fromEntries(named.map((file) => [path.relative(folder, file), readFileSync(file, 'utf8')]));
}

const repositoryOf = (name: string) => {
  const repository = program.makeRepository();
  repository.commit(filesOf(path.join(EXAMPLES, name)));
  return { url: repository.url, branch: 'main' };
};

async function deploy(name: string) {
  const { id } = await program.ask('POST', `/environment/${environment}/application`, {
    name,
    git_repository: repositoryOf(name),
    ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
  });
  return { id, ...(await program.ask('POST', `/application/${id}/deploy?wait=240`)) };
}

/** Programs of one repository: their folder, command and answer, and the programs that the machine must have. */
const WORKSPACES = [
  { name: 'npm', root_path: '/apps/web', words: [], programs: ['node', 'npm'], answer: 'Hello from a workspace' },
  { name: 'go', root_path: '/', words: ['web'], programs: ['go'], answer: 'Hello from one of several programs' },
  { name: 'go', root_path: '/cmd/web', words: [], programs: ['go'], answer: 'Hello from one of several programs' },
  {
    name: 'uv',
    root_path: '/services/api',
    words: [],
    programs: ['python3', 'uv'],
    answer: 'Hello from a workspace of uv',
  },
];

test.each(WORKSPACES)(
  'the program of a repository of several, $name at $root_path, is deployed, or says which program the machine lacks',
  async ({ name, root_path, words, programs, answer }) => {
    const missing = programs.filter((one) => findProgram(one) === null);
    const { id } = await program.ask('POST', `/environment/${environment}/application`, {
      name: `${name}${root_path}`.replaceAll('/', '-'),
      git_repository: { ...repositoryOf(`../workspaces/${name}`), root_path },
      arguments: words,
      ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
    });
    const { state, error } = await program.ask('POST', `/application/${id}/deploy?wait=240`);
    if (missing.length > 0)
      return expect(JSON.stringify(error)).toContain(`This machine has no ${missing.join(' ')}: install it`);
    expect(state, JSON.stringify(error, null, 1)).toBe('DEPLOYED');
    expect(await ask(id, '/')).toBe(`200 ${answer}\n`);
  },
  300_000,
);

function ask(id: string, route: string): Promise<string> {
  const { proxyPort: port } = program.running.settings;
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { host: `app-z${id.slice(0, 8)}.localhost` };
  get({ host: '127.0.0.1', port, path: route, headers, agent: false }, (response) =>
    text(response).then((body) => resolve(`${response.statusCode} ${body}`), reject),
  ).on('error', reject);
  return promise;
}

test.each(Object.keys(WANTED))(
  'the example %s is deployed without a Dockerfile, or says which program the machine lacks',
  async (name) => {
    const { programs, answer } = WANTED[name]!;
    const missing = programs.filter((one) => findProgram(one) === null);
    const { id, state, error } = await deploy(name);
    if (missing.length > 0) {
      const lines = [expect.stringContaining(`This machine has no ${missing.join(' ')}: install it`)];
      expect(error).toMatchObject({ code: 'BUILD_FAILED', cause: { code: 'MACHINE_PROGRAM_MISSING', lines } });
      return;
    }
    expect(state, JSON.stringify(error, null, 1)).toBe('DEPLOYED');
    expect(await ask(id, '/')).toMatch(`200 ${answer}`);
    const log = JSON.stringify(await program.ask('GET', `/environment/${environment}/logs`));
    expect(log).toContain('There is no Dockerfile; this one is made. Recognised by');
    // A folder of files shows neither hidden ones nor its own configuration.
    if (name !== 'static') return;
    for (const route of ['/Caddyfile', '/.git/HEAD', '/nothing']) expect(await ask(id, route)).toMatch(/^404/);
    expect(await ask(id, '/index.html')).toMatch(/^200/);
  },
  300_000,
);

test('the Dockerfile that is made is shown before anything is stored; committed, it builds the same', async () => {
  const git_repository = repositoryOf('node');
  const route = `/environment/${environment}/generateDockerfile`;
  const made = await program.ask('POST', route, { git_repository, port: 3000 });
  expect(made).toMatchObject({ language: 'NODE', recognised_by: expect.stringContaining('package-lock.json') });
  const repository = program.makeRepository();
  repository.commit({
    ...filesOf(path.join(EXAMPLES, 'node')),
    Dockerfile: made.dockerfile,
    '.dockerignore': made.dockerignore,
  });
  const { id } = await program.ask('POST', `/environment/${environment}/application`, {
    name: 'adopted',
    git_repository: { url: repository.url, branch: 'main' },
    ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
  });
  expect(await program.ask('POST', `/application/${id}/deploy?wait=240`)).toMatchObject({ state: 'DEPLOYED' });
  expect(await ask(id, '/')).toBe('200 Hello from Node.js\n');
}, 120_000);

test('jobs run the command of the Procfile that is for jobs, or the one that they name, and have no port', async () => {
  const repository = program.makeRepository();
  const report = 'console.log(`report ${process.argv[2]} ${process.env.PORT}`);\n';
  const files = { ...filesOf(path.join(EXAMPLES, 'node')), 'report.js': report };
  repository.commit({ ...files, Procfile: 'web: node server.js\njob: node report.js daily\n' });
  const git_repository = { url: repository.url, branch: 'main' };
  const run = async (name: string, schedule: object) => {
    const body = { name, source: { docker: { git_repository } }, schedule, healthchecks: {} };
    const { id } = await program.ask('POST', `/environment/${environment}/job`, body);
    const event = 'cronjob' in schedule ? '&forceEvent=CRON' : '';
    const { state, error } = await program.ask('POST', `/job/${id}/deploy?wait=120${event}`);
    const [execution] = (await program.ask('GET', `/job/${id}/execution`)).results;
    const log = execution && (await program.ask('GET', `/job/${id}/execution/${execution.id}/log`)).results;
    return { state, error, lines: (log ?? []).map(({ message }: { message: string }) => message) };
  };
  const scheduled_at = '0 3 * * *';
  expect(await run('made', { cronjob: { scheduled_at } })).toMatchObject({
    lines: expect.arrayContaining(['report daily undefined']),
  });
  const named = { arguments: ['node', 'report.js', 'weekly'] };
  expect(await run('named', { cronjob: { scheduled_at, ...named } })).toMatchObject({
    lines: expect.arrayContaining(['report weekly undefined']),
  });
  expect(await run('lifecycle', { on_start: { entrypoint: 'node', arguments: ['report.js', 'first'] } })).toMatchObject(
    {
      state: 'DEPLOYED',
      lines: expect.arrayContaining(['report first undefined']),
    },
  );
}, 240_000);
