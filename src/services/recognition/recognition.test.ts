import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { filesOf } from '#deployments/executor/checkout-files.ts';
import type { CheckoutFiles } from '#deployments/index.ts';
import { filesOfPaths, forApplication, forJob } from '#services/images/made-dockerfile.ts';
import { makeDockerfile, RecognitionError, type ProjectOptions } from '#services/recognition/index.ts';
import { parseDockerfile } from '#kernel/parsing/dockerfile.ts';

const EXAMPLES = path.join(import.meta.dirname, '../../../examples/projects');

/** Files of a project in memory. */
const inMemory = (files: Record<string, string>): CheckoutFiles =>
  filesOfPaths({ paths: Object.keys(files), read: async (file) => files[file] });

type Changes = Partial<ProjectOptions & { rootPath: string }>;

const make = (files: CheckoutFiles, changes: Changes = {}) =>
  makeDockerfile(files, {
    ...forApplication(3000, false),
    owner: 'owner',
    rootPath: '/',
    variables: [],
    isMachine: false,
    ...changes,
  });

const made = async (files: Record<string, string>, changes: Changes = {}) => make(inMemory(files), changes);

const failure = async (files: Record<string, string>, changes: Changes = {}) => {
  const error = await made(files, changes).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(RecognitionError);
  return (error as Error).message;
};

describe('an example', () => {
  test.each(readdirSync(EXAMPLES))(
    '%s has the Dockerfile that stands here, on images and on a machine',
    async (name) => {
      const files = filesOf(path.join(EXAMPLES, name));
      const { text, ignore } = await make(files);
      await expect(text).toMatchFileSnapshot(`expected/${name}.Dockerfile`);
      await expect((await make(files, { isMachine: true })).text).toMatchFileSnapshot(
        `expected/${name}.machine.Dockerfile`,
      );
      expect(ignore).toContain('.git\n');
    },
  );

  test.each([
    ['npm', '/apps/web', forApplication(3000, false)],
    ['npm', '/apps/report', forJob(false, false)],
    ['uv', '/services/api', forApplication(3000, false)],
    ['go', '/', forApplication(3000, true)],
  ] as const)('of several programs, %s at %s, has the Dockerfile that stands here', async (name, rootPath, service) => {
    const files = filesOf(path.join(EXAMPLES, '../workspaces', name));
    const { text } = await make(files, { rootPath, ...service });
    await expect(text).toMatchFileSnapshot(`expected/${name}${rootPath.replaceAll('/', '-')}.workspace.Dockerfile`);
  });

  test.each(readdirSync(EXAMPLES))(
    '%s runs without privileges, on the port of the service, in a small image',
    async (name) => {
      const { text } = await make(filesOf(path.join(EXAMPLES, name)));
      const { instructions } = parseDockerfile(text);
      const last = instructions.slice(instructions.findLastIndex(({ keyword }) => keyword === 'FROM'));
      expect(last.map(({ keyword, text: words }) => `${keyword} ${words}`)).toEqual(
        expect.arrayContaining(['WORKDIR /app', 'ENV PORT=3000', 'EXPOSE 3000', 'USER 65532:65532']),
      );
      expect(last.at(-1)).toMatchObject({ keyword: 'CMD', json: ['sh', '-c', expect.any(String)] });
    },
  );
});

describe('Node.js', () => {
  const project = (own: object, others: Record<string, string> = {}) =>
    made({ 'package.json': JSON.stringify(own), ...others });

  test.each([
    ['package-lock.json', 'npm ci', 'Node.js 24 with npm'],
    ['pnpm-lock.yaml', 'pnpm install --frozen-lockfile', 'Node.js 24 with pnpm'],
    ['yarn.lock', 'yarn install --frozen-lockfile', 'Node.js 24 with Yarn'],
    ['bun.lock', 'bun install --frozen-lockfile', 'Bun with Bun'],
  ])('is installed by the manager of %s', async (lock, command, because) => {
    const { text, ...said } = await project({ scripts: { start: 'node a.js' } }, { [lock]: '' });
    expect(text).toContain(command);
    expect(said).toMatchObject({ language: 'NODE', because: expect.stringContaining(because) });
  });

  test('takes the version of the package manager, and the release that the project allows', async () => {
    const own = { engines: { node: '^22.1.0' }, packageManager: 'pnpm@10.4.1+sha512.abc', main: './lib/server.js' };
    const { text } = await project(own, { 'pnpm-lock.yaml': '', 'lib/server.js': '', 'index.js': '' });
    expect(text).toContain('FROM node:22-slim\n');
    expect(text).toContain('RUN npm install --global --no-audit --no-fund pnpm@10.4.1\n');
    const named = await project({ main: 'index.js' }, { '.nvmrc': 'v20.11.0\n', 'index.js': '' });
    expect(named.text).toContain('FROM node:20 AS build');
    for (const node of ['>=99', 'latest', '!', '1'.repeat(5_000), ' || '.repeat(50)])
      expect((await project({ engines: { node }, scripts: { start: 'x' } })).text).toContain('FROM node:24 AS build');
  });

  test('starts by the Procfile, the script, or its main file, in place of the shell where that is possible', async () => {
    const command = async (own: object, others: Record<string, string> = {}) =>
      JSON.parse(/^CMD (.*)$/m.exec((await project(own, others)).text)![1]!)[2];
    expect(await command({ scripts: { start: 'next start' } })).toBe('exec next start');
    expect(await command({ scripts: { start: 'NODE_ENV=production node a.js' } })).toBe(
      'exec env NODE_ENV=production node a.js',
    );
    expect(await command({ scripts: { start: 'node a.js && node b.js' } })).toBe('node a.js && node b.js');
    expect(await command({ scripts: { start: 'x', prestart: 'y' } })).toBe('exec npm run start');
    expect(await command({ scripts: { start: 'x' } }, { Procfile: 'worker: a\nweb: node web.js\n' })).toBe(
      'exec node web.js',
    );
    expect(await command({}, { 'server.mjs': '' })).toBe('exec node server.mjs');
    expect(await command({ scripts: { start: 'say "a\nUSER root"' } })).toBe('say "a\nUSER root"');
  });

  test('serves files where its build makes files for browsers and its start is for development', async () => {
    const site = { scripts: { build: 'vite build', dev: 'vite' }, devDependencies: { vite: '7' } };
    const { text } = await project(site);
    expect(text).toContain('COPY --from=build --chown=65532:65532 /app/dist ./');
    expect(text).toContain('rewrite @page /index.html');
    const react = { scripts: { build: 'b', start: 'react-scripts start' }, dependencies: { 'react-scripts': '5' } };
    expect((await project(react)).text).toContain('/app/build ./');
    const server = { scripts: { build: 'b', start: 'node server.js' }, devDependencies: { vite: '7' } };
    expect((await project(server)).text).toContain('exec node server.js');
  });

  test('has the variables at its build that end up in browsers anyway, and no others', async () => {
    const files = { 'package.json': '{"scripts":{"build":"b","start":"s"}}' };
    const variables = ['DATABASE_URL', 'VITE_API', 'NEXT_PUBLIC_API', 'VITE_API\nUSER root', 'MY_VITE_API'];
    const { text } = await made(files, { variables });
    expect(text.match(/^ARG .*$/gm)).toEqual(['ARG NEXT_PUBLIC_API', 'ARG VITE_API']);
    expect(text.indexOf('ARG ')).toBeLessThan(text.indexOf('npm run build'));
    expect((await made({ 'package.json': '{"scripts":{"start":"s"}}' }, { variables })).text).not.toContain('ARG ');
  });

  test('that nothing starts, or whose package.json is none, says what is wrong', async () => {
    expect(await failure({ 'package.json': '{}' })).toContain('add a script "start" to package.json');
    await expect(made({ 'package.json': '{' })).rejects.toThrow('package.json: it is not JSON');
    for (const scripts of ['null', '[]', '"text"', '{"start":1}'])
      expect(await failure({ 'package.json': `{"scripts":${scripts}}` })).toContain('nothing says how it is started');
  });
});

describe('Python', () => {
  test.each([
    [
      'requirements.txt',
      'requirements.txt',
      '.venv/bin/python -m pip install --disable-pip-version-check -r requirements.txt',
    ],
    ['uv.lock', 'uv.lock pyproject.toml', 'uv sync --frozen --no-dev'],
    ['poetry.lock', 'poetry.lock pyproject.toml', 'poetry install --only main'],
    ['pyproject.toml', 'pyproject.toml', '.venv/bin/python -m pip install --disable-pip-version-check .'],
  ])('is installed by what %s belongs to', async (lock, copied, command) => {
    const { text } = await made({
      [lock]: '',
      'pyproject.toml': '[project]\nrequires-python = ">=3.11,<3.13"\n',
      'main.py': '',
    });
    expect(text).toContain(command);
    expect(text).toContain('FROM python:3.12 AS build');
    expect(text).toContain(`COPY ${copied}`);
  });

  test.each([
    [
      { 'main.py': 'app = FastAPI()\n', 'requirements.txt': 'fastapi\nuvicorn==1\n' },
      'python -m uvicorn main:app --host 0.0.0.0 --port "$PORT"',
    ],
    [
      { 'app.py': 'site: Flask = Flask(__name__)\n', 'requirements.txt': 'flask\ngunicorn\n' },
      'python -m gunicorn app:site --bind "0.0.0.0:$PORT"',
    ],
    [{ 'app.py': 'app = Flask(__name__)\n', 'requirements.txt': 'flask\n' }, 'python app.py'],
    [
      {
        'manage.py': `os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')\n`,
        'requirements.txt': 'django\ngunicorn\n',
        'package.json': '{}',
      },
      'python -m gunicorn shop.wsgi --bind "0.0.0.0:$PORT"',
    ],
  ])('is started by the server of its framework: %o', async (files, command) => {
    const { text, language } = await made(files as Record<string, string>);
    expect([language, JSON.parse(/^CMD (.*)$/m.exec(text)![1]!)[2]]).toEqual(['PYTHON', `exec ${command}`]);
    expect(text).toContain('ENV PATH=/app/.venv/bin:$PATH\n');
  });

  test('that nothing starts says what would help; with a package.json it is one of Node.js', async () => {
    expect(await failure({ 'requirements.txt': '' })).toContain('add a main.py');
    expect(await failure({ 'manage.py': '' })).toContain('add gunicorn');
    expect(await made({ 'requirements.txt': '', 'package.json': '{"main":"index.js"}', 'index.js': '' })).toMatchObject(
      {
        language: 'NODE',
      },
    );
  });
});

test('Go builds the root, or the only program below cmd', async () => {
  const go = { 'go.mod': 'module example.com/shop/v2\n\ngo 1.24.1\n', 'go.sum': '' };
  expect((await made({ ...go, 'cmd/web/main.go': '', 'cmd/internal/a.go': '' })).text).toContain(
    '-o /app/out/web ./cmd/web\n',
  );
  expect((await made({ ...go, 'main.go': '', 'cmd/web/main.go': '' })).text).toMatch(/out\/shop \.$/m);
  expect((await made({ ...go, 'main.go': '', 'templates/a.html': '' })).text).toContain(
    'COPY --chown=65532:65532 templates/ templates/',
  );
});

test('of several programs in Go the service names the one to run, and the image has all of them', async () => {
  const go = { 'go.mod': 'module a\n', 'cmd/web/main.go': '', 'cmd/report/main.go': '' };
  const choices = 'several programs below cmd (report, web): name the one to run in the arguments of the service';
  expect(await failure(go)).toContain(choices);
  expect(await failure(go, forJob(false, true))).toContain(choices);
  for (const service of [forApplication(3000, true), forJob(true, false)]) {
    const { text } = await made(go, service);
    expect(text).toContain('-o /app/out/ ./cmd/...');
    expect(text).toContain('ENV PATH=/app/bin:$PATH\n');
    expect(text).not.toContain('CMD');
  }
  const rooted = await made({ ...go, 'main.go': '' }, forJob(true, false));
  expect(rooted.text).toMatch(/-o \/app\/out\/a \.\n.*-o \/app\/out\/ \.\/cmd\/\.\.\.\n/);
  expect(rooted.because).toBe('go.mod: Go 1, programs a, report, web');
  expect((await made({ ...go, Procfile: 'web: bin/web --verbose\n' })).text).toContain('"exec bin/web --verbose"');
});

test('a program within a module of Go is built of the module; a module within a workspace of the workspace', async () => {
  const within = { 'go.mod': 'module a\n\ngo 1.24\n', 'cmd/web/main.go': '', 'cmd/report/main.go': '' };
  const { text, ...said } = await make(inMemory(within), { rootPath: '/cmd/web' });
  expect(said).toMatchObject({ rootPath: '/', dockerfilePath: 'cmd/web/Dockerfile' });
  expect(text).toContain('-o /app/out/web ./cmd/web\n');
  expect(text).toContain('"exec web"');
  const modules = { 'go/go.work': 'go 1.24\nuse (\n\t./api\n\t./lib\n)\n', 'go/api/main.go': '', 'go/lib/go.mod': '' };
  const api = { 'go/api/go.mod': 'module b/api\nreplace b/lib => ../lib\n' };
  const used = await make(inMemory({ ...modules, ...api }), { rootPath: '/go/api' });
  expect(used).toMatchObject({ rootPath: '/go', dockerfilePath: 'api/Dockerfile' });
  expect(used.text).toContain('cd api && go build -trimpath -ldflags="-s -w" -o /app/out/api .\n');
  await expect(make(inMemory({ ...api, 'go/api/main.go': '' }), { rootPath: '/go/api' })).rejects.toThrow(
    'go.mod takes a module from ../lib, which is not below root_path /go/api: commit a go.work above both',
  );
});

describe('a job', () => {
  const cron = forJob(false, false);
  const command = async (files: Record<string, string>, service = cron) =>
    JSON.parse(/^CMD (.*)$/m.exec((await made(files, service)).text)?.[1] ?? 'null')?.[2];
  const own = (more: object) => ({ 'package.json': JSON.stringify(more) });

  test('has no port, and the layers of an application of the same repository', async () => {
    const files = { ...own({ scripts: { start: 'node a.js' } }), 'a.js': '' };
    const lines = async (service: typeof cron) => (await made(files, service)).text.split('\n');
    const [application, job] = await Promise.all([lines(forApplication(3000, false)), lines(cron)]);
    expect(application.filter((line) => !job.includes(line))).toEqual(['ENV PORT=3000', 'EXPOSE 3000']);
    expect(job.filter((line) => !application.includes(line))).toEqual([]);
  });

  test('runs the line of the Procfile that is for jobs; at deployments alone the line for these comes first', async () => {
    const files = { ...own({}), Procfile: 'web: node web.js\njob: node job.js\nrelease: node release.js\n' };
    expect(await command(files)).toBe('exec node job.js');
    expect(await command(files, forJob(false, true))).toBe('exec node release.js');
    expect(await failure({ ...own({}), Procfile: 'web: node web.js\n' }, cron)).toContain('a line "job: …"');
  });

  test.each([
    [own({ scripts: { start: 'node report.js' } }), 'exec node report.js'],
    [{ 'requirements.txt': '', 'main.py': 'print(1)\n' }, 'exec python main.py'],
    [{ 'go.mod': 'module report\n', 'main.go': '' }, 'exec report'],
    [{ 'Cargo.toml': '[package]\nname = "report"\n' }, 'exec report'],
    [{ Gemfile: '', 'app.rb': '' }, 'exec bundle exec ruby app.rb'],
    [{ 'pom.xml': '<project/>' }, 'exec java -XX:MaxRAMPercentage=75 -jar app.jar'],
  ] as [Record<string, string>, string][])(
    'runs the program of the project, if that is no server: %o',
    async (files, line) => {
      expect(await command(files)).toBe(line);
    },
  );

  test.each([
    [own({ scripts: { start: 'node a.js' }, dependencies: { express: '5' } }), 'a project with express', 'node'],
    [own({ scripts: { build: 'vite build' }, devDependencies: { vite: '7' } }), 'a project with vite', 'node'],
    [{ 'requirements.txt': 'flask\n', 'app.py': 'app = Flask(__name__)\n' }, 'a project of Flask', 'python'],
    [{ 'manage.py': '' }, 'a project of Django', 'python'],
    [{ Gemfile: '', 'config.ru': '' }, 'a project of Rack', 'bundle'],
    [{ 'index.php': '' }, 'a site of PHP', 'php'],
    [{ 'pom.xml': '<artifactId>spring-boot-starter-web</artifactId>' }, 'a web application in Java', 'java'],
  ] as [Record<string, string>, string, string][])(
    'whose project is a server is refused, and told to name its command; with one it is built: %o',
    async (files, project, program) => {
      const message = await failure(files, cron);
      expect(message).toContain(`This looks like ${project}, which is a server, and a job runs to its end`);
      expect(message).toContain(`in the arguments of the job, such as ["${program}",`);
      expect(await command(files, forJob(true, false))).toBeUndefined();
    },
  );

  test('of files for browsers is not recognised', async () => {
    expect(await failure({ 'index.html': '' }, forJob(true, false))).toContain('No project is recognised there');
  });
});

describe('a package of a workspace of Node.js', () => {
  const member = (more: object = {}) => JSON.stringify({ scripts: { start: 'node .' }, ...more });
  const at = (files: Record<string, string>, rootPath = '/apps/web', changes: Changes = {}) =>
    make(inMemory(files), { rootPath, ...changes });

  test.each([
    ['package-lock.json', { workspaces: ['apps/*'] }, {}, 'npm ci', 'npm prune'],
    [
      'yarn.lock',
      { workspaces: { packages: ['./apps/web'] } },
      {},
      'yarn install --frozen-lockfile',
      'yarn install --production',
    ],
    ['bun.lock', { workspaces: ['apps/**'] }, {}, 'bun install --frozen-lockfile', null],
    [
      'pnpm-lock.yaml',
      {},
      { 'pnpm-workspace.yaml': 'packages:\n  - "apps/*"\n' },
      'pnpm install --frozen-lockfile',
      null,
    ],
  ])('is built of the whole workspace, whose lock file is %s', async (lock, whole, others, install, prune) => {
    const files = {
      'package.json': JSON.stringify({ engines: { node: '22' }, ...whole }),
      [lock]: '',
      ...others,
      'apps/web/package.json': member({ devDependencies: { typescript: '5' } }),
    };
    const { text, ...said } = await at(files as Record<string, string>);
    expect(said).toMatchObject({ rootPath: '/', dockerfilePath: 'apps/web/Dockerfile' });
    expect(text).toContain(
      'commit it as apps/web/Dockerfile, with root_path / and dockerfile_path apps/web/Dockerfile.',
    );
    expect(text).toContain(install);
    expect(text.indexOf('COPY . ./')).toBeLessThan(text.indexOf(install));
    expect(text).toContain('FROM node:22-slim\n'.replace(/node:22/, lock === 'bun.lock' ? 'oven/bun:1' : 'node:22'));
    expect(text).toContain('ENV PATH=/app/apps/web/node_modules/.bin:/app/node_modules/.bin:$PATH\n');
    expect(text).toMatch(/WORKDIR \/app\/apps\/web\nUSER .*\nCMD .*node \./);
    if (prune === null) expect(text).not.toMatch(/prune|--production/);
    else expect(text).toContain(prune);
  });

  test('is built after the packages that it depends on, and those that it does not are not built', async () => {
    const build = { build: 'tsc' };
    const files = {
      'package.json': '{"workspaces":["apps/*","packages/*","!packages/old"]}',
      'apps/web/package.json': member({ scripts: { ...build, start: 'x' }, dependencies: { ui: '*', lib: '1' } }),
      'packages/lib/package.json': JSON.stringify({ name: 'lib', scripts: build, dependencies: { web: '*' } }),
      'packages/ui/package.json': JSON.stringify({ name: 'ui', scripts: build, dependencies: { lib: '*' } }),
      'packages/other/package.json': JSON.stringify({ name: 'other', scripts: build }),
      'packages/old/package.json': JSON.stringify({ name: 'lib', scripts: {} }),
    };
    const { text } = await at(files, '/apps/web', { variables: ['VITE_A'] });
    expect(text.match(/^(?:ARG|RUN cd) .*$/gm)).toEqual([
      'ARG VITE_A',
      'RUN cd packages/lib && npm run build',
      'RUN cd packages/ui && npm run build',
      'RUN cd apps/web && npm run build',
    ]);
  });

  test('that makes files for browsers has them served', async () => {
    const site = JSON.stringify({ scripts: { build: 'vite build' }, devDependencies: { vite: '7' } });
    const { text } = await at({ 'package.json': '{"workspaces":["apps/*"]}', 'apps/web/package.json': site });
    expect(text).toContain('COPY --from=build --chown=65532:65532 /app/apps/web/dist ./');
    expect(text).not.toContain('WORKDIR /app/apps');
  });

  test('may be below the root of the repository, and stands for itself with a lock file of its own, or where none names it', async () => {
    const whole = { 'js/package.json': '{"workspaces":["apps/*"]}', 'js/apps/web/package.json': member() };
    expect(await at(whole, '/js/apps/web')).toMatchObject({ rootPath: '/js', dockerfilePath: 'apps/web/Dockerfile' });
    for (const files of [
      { ...whole, 'js/apps/web/package-lock.json': '' },
      { ...whole, 'js/package.json': '{"workspaces":["packages/*","!apps/*"]}' },
      { ...whole, 'js/package.json': '{"workspaces":"apps"}' },
    ])
      expect(await at(files, '/js/apps/web')).toMatchObject({ rootPath: '/js/apps/web', dockerfilePath: 'Dockerfile' });
  });

  test.each(['workspace:*', 'file:../lib', 'link:../../lib'])(
    'that no workspace names, and that takes a package from %s, says what to do',
    async (from) => {
      const files = { 'apps/web/package.json': member({ dependencies: { lib: from } }) };
      const error = await at(files).catch((caught: Error) => caught);
      expect(error).toMatchObject({
        name: 'RecognitionError',
        message: expect.stringMatching(
          /takes lib from .* not below root_path \/apps\/web: name both folders in "workspaces"/,
        ),
      });
    },
  );

  test.each(['a b', 'a;id', 'a$(id)', 'a\nUSER root'])(
    'in the folder %o, which is no plain name, is refused',
    async (name) => {
      const files = { 'package.json': '{"workspaces":["apps/*"]}', [`apps/${name}/package.json`]: member() };
      await expect(at(files, `/apps/${name}`)).rejects.toThrow('must have only letters, digits and . _ @ + -');
      const other = { ...files, 'apps/web/package.json': member() };
      expect((await at(other)).text).not.toContain(name);
    },
  );

  test('in a workspace of very many packages is refused', async () => {
    const many = Array.from({ length: 101 }, (_, index) => [`packages/p${index}/package.json`, '{}']);
    const files = { 'package.json': '{"workspaces":["apps/*","packages/*"]}', 'apps/web/package.json': member() };
    await expect(at({ ...Object.fromEntries(many), ...files })).rejects.toThrow('more than 100 packages');
  });
});

test('a package of a workspace of uv is installed by name, from the root with the lock file', async () => {
  const root = '[tool.uv.workspace]\nmembers = ["services/*"]\nexclude = ["services/old"]\n';
  const own = '[project]\nname = "api"\nrequires-python = "==3.12.*"\n';
  const files = {
    'pyproject.toml': root,
    'uv.lock': '',
    'services/api/pyproject.toml': own,
    'services/api/main.py': '',
    'services/old/pyproject.toml': own,
    'services/old/main.py': '',
  };
  const { text, ...said } = await make(inMemory(files), { rootPath: '/services/api' });
  expect(said).toMatchObject({ rootPath: '/', dockerfilePath: 'services/api/Dockerfile' });
  expect(text).toContain('uv sync --frozen --no-dev --no-editable --package api\n');
  expect(text).toContain('FROM python:3.12-slim\n');
  expect(text).toContain('WORKDIR /app/services/api\n');
  expect(text).toContain('ENV PATH=/app/.venv/bin:$PATH\n');
  expect(await make(inMemory(files), { rootPath: '/services/old' })).toMatchObject({ rootPath: '/services/old' });
});

test.each([
  [{ 'requirements.txt': 'flask\n-e ../lib\n', 'main.py': '' }],
  [{ 'requirements.txt': './../lib\n../lib\n', 'main.py': '' }],
  [{ 'pyproject.toml': '[tool.poetry.dependencies]\nlib = { path = "../lib" }\n', 'poetry.lock': '', 'main.py': '' }],
] as Record<string, string>[][])(
  'a project of Python that takes a folder beside it says what to do: %o',
  async (files) => {
    expect(await failure(files!)).toContain('names a folder outside of root_path /');
  },
);

describe('a registry of packages that takes a token', () => {
  const steps = (text: string) => text.split('\n').filter((line) => line.includes('type=secret'));
  const node = { 'package.json': '{"scripts":{"start":"x"},"devDependencies":{"a":"1"}}' };

  test.each([
    ['package-lock.json', '.npmrc', '//npm.example.com/:_authToken=${NPM_TOKEN}\n'],
    ['pnpm-lock.yaml', '.npmrc', '//npm.example.com/:_authToken=${NPM_TOKEN}\nprefix=${HOME}/x\n'],
    ['yarn.lock', '.yarnrc.yml', 'npmAuthToken: "${NPM_TOKEN-}"\n'],
    ['bun.lock', 'bunfig.toml', '[install.scopes]\na = { token = "$NPM_TOKEN" }\n'],
  ])(
    'is reached by an installation of %s with the variables that %s names, and no other step has them',
    async (lock, file, text) => {
      const files = { ...node, [lock]: '', [file]: text };
      const machine = steps((await made(files, { isMachine: true })).text);
      expect(machine.length).toBeGreaterThan(0);
      for (const line of machine)
        expect(line).toMatch(/^RUN --mount=type=secret,id=NPM_TOKEN,env=NPM_TOKEN \S*(?: \S*)* (?:install|ci|prune)\b/);
      const images = steps((await made(files)).text);
      expect(images).toHaveLength(machine.length);
      for (const line of images) expect(line).toContain('for name in NPM_TOKEN; do if [ -f "/run/secrets/$name" ]');
      expect((await made(files)).text).not.toMatch(/^ARG|^ENV.*NPM_TOKEN/m);
    },
  );

  test.each([
    [{ 'requirements.txt': '--index-url https://u:${PIP_TOKEN}@pypi.example.com/simple\nflask\n' }, 'PIP_TOKEN', []],
    [{ 'requirements.txt': 'flask\n', 'pip.conf': '[global]\n' }, 'PIP_EXTRA_INDEX_URL', ['PIP_EXTRA_INDEX_URL', 'X']],
    [{ 'uv.lock': '', 'pyproject.toml': '' }, 'UV_INDEX_OWN_PASSWORD', ['UV_INDEX_OWN_PASSWORD', 'PIP_INDEX_URL']],
    [{ 'poetry.lock': '', 'pyproject.toml': '' }, 'POETRY_HTTP_BASIC_OWN_PASSWORD', ['POETRY_HTTP_BASIC_OWN_PASSWORD']],
  ] as [Record<string, string>, string, string[]][])(
    'is reached by Python: %o with %s',
    async (files, name, variables) => {
      const { text } = await made({ ...files, 'main.py': '' }, { variables, isMachine: true });
      expect(steps(text)).toEqual([expect.stringContaining(`RUN --mount=type=secret,id=${name},env=${name} `)]);
      expect(text).not.toMatch(/id=X|id=PIP_INDEX_URL/);
      if ('pip.conf' in files) expect(text).toContain('PIP_CONFIG_FILE=pip.conf .venv/bin/python -m pip install');
    },
  );
});

test('Rust builds the only program of Cargo.toml', async () => {
  const cargo = (text: string) => ({ 'Cargo.toml': text, 'src/main.rs': '' });
  expect((await made(cargo('[package]\nname = "a"\n[[bin]]\nname = "b"\n'))).text).toContain('--bin b ');
  const several = '[[bin]]\nname = "b"\n[[bin]]\nname = "c"\n';
  expect((await made(cargo(`[package]\nname = "a"\ndefault-run = "c"\n${several}`))).text).toContain('--bin c ');
  expect(await failure(cargo(several))).toContain('set default-run');
  expect(await failure(cargo('[package]\nname = "a; rm"\n'))).toContain('names no single program');
  await expect(made(cargo('[package'))).rejects.toThrow('Cargo.toml: ');
});

test('Java is built by Maven or Gradle, or by the wrapper of the project, on the release that it names', async () => {
  const gradle = 'java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }';
  const { text } = await made({ 'build.gradle.kts': gradle, gradlew: '' });
  expect(text).toContain('FROM eclipse-temurin:21-jdk AS build');
  expect(text).toContain('sh gradlew --no-daemon');
  const pom = '<project><properties><java.version>25</java.version></properties></project>';
  expect((await made({ 'pom.xml': pom })).text).toContain('FROM maven:3-eclipse-temurin-25 AS build');
  expect((await made({ 'pom.xml': '<groupId>io.quarkus</groupId>' })).text).toContain('quarkus-app/quarkus-run.jar');
});

test('PHP has its extensions and is served from public', async () => {
  const composer = JSON.stringify({ require: { php: '^8.3', 'ext-intl': '*', 'ext-$(x)': '*', 'a/b': '1' } });
  const { text } = await made({ 'composer.json': composer, 'public/index.php': '' });
  expect(text).toContain('FROM dunglas/frankenphp:php8.4 AS build');
  expect(text.match(/install-php-extensions intl\n/g)).toHaveLength(2);
  expect(text).toContain('php-server --listen \\":$PORT\\" --root public');
});

test('Ruby is started by its framework', async () => {
  const rails = { Gemfile: 'ruby "3.3.1"\ngem "rails"\n', 'bin/rails': '', 'app/a.rb': '', 'Gemfile.lock': '' };
  const { text } = await made(rails);
  expect(text).toContain('FROM ruby:3.3-slim');
  expect(text).toContain('assets:precompile');
  expect(text).toContain('rails server --binding 0.0.0.0');
  expect((await made({ Gemfile: 'gem "rack"\n', 'config.ru': '' })).text).toContain('bundle exec rackup');
  expect(await failure({ Gemfile: '' })).toContain('add a config.ru');
});

test.each([
  [{ 'package.json': '{"scripts":{"start":"x","postinstall":"prisma generate"}}' }, 'npm install'],
  [{ 'package.json': '{"scripts":{"start":"x"},"workspaces":["a"]}' }, 'npm install'],
  [{ 'package.json': '{"scripts":{"start":"x"}}', 'pnpm-lock.yaml': '', 'patches/a.patch': '' }, 'pnpm install'],
  [{ 'requirements.txt': 'flask\n-r base.txt\n', 'main.py': '' }, 'pip install'],
  [{ 'uv.lock': '', 'pyproject.toml': '[tool.uv.workspace]\nmembers = []\n', 'main.py': '' }, 'uv sync'],
  [{ 'go.mod': 'module a\nreplace b => ./b\n', 'main.go': '' }, 'go mod download'],
  [{ Gemfile: 'gem "a", path: "a"\n', 'config.ru': '' }, 'bundle install'],
] as [Record<string, string>, string][])('an installation that reads sources has them: %o', async (files, install) => {
  const { text } = await made(files);
  expect(text).toContain(install);
  expect(text.indexOf('COPY . ./')).toBeLessThan(text.indexOf(install));
});

test('a project below the root is read there; an own .dockerignore counts', async () => {
  const files = inMemory({ 'web/index.html': '', 'web/.dockerignore': '', Gemfile: '' });
  expect(await make(inMemory({ '.web/index.html': '', 'web/go.mod': '' }), { rootPath: '/.web' })).toMatchObject({
    language: 'STATIC',
  });
  for (const rootPath of ['/web', 'web/', './web'])
    expect(await make(files, { rootPath })).toMatchObject({ language: 'STATIC', ignore: null });
});

test('files that are long and say nothing are read, or refused', async () => {
  const long = { newlines: '\n'.repeat(500_000), blanks: ' '.repeat(500_000), words: 'ruby\n'.repeat(100_000) };
  for (const text of Object.values(long)) {
    const files = { 'manage.py': text, 'main.py': text, 'requirements.txt': text, Procfile: text, '.nvmrc': text };
    for (const own of [
      files,
      { ...files, Gemfile: text, 'Gemfile.lock': text },
      { 'pom.xml': text },
      { 'go.mod': text },
    ])
      await made(own as Record<string, string>).catch((error: unknown) => expect(error).toBeInstanceOf(Error));
  }
});

test('what is no project says which are', async () => {
  expect(await failure({ 'README.md': '' })).toContain('No project is recognised there: Node.js, Python');
});
