import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { filesOf } from '#deployments/executor/checkout-files.ts';
import type { CheckoutFiles } from '#deployments/index.ts';
import { filesOfPaths } from '#services/images/made-dockerfile.ts';
import { makeDockerfile, RecognitionError } from '#services/recognition/index.ts';
import { parseDockerfile } from '#kernel/parsing/dockerfile.ts';

const EXAMPLES = path.join(import.meta.dirname, '../../../examples/projects');

/** Files of a project in memory. */
const inMemory = (files: Record<string, string>): CheckoutFiles =>
  filesOfPaths({ paths: Object.keys(files), read: async (file) => files[file] });

const make = (files: CheckoutFiles, changes: { rootPath?: string; isMachine?: boolean; variables?: string[] } = {}) =>
  makeDockerfile(files, { owner: 'owner', rootPath: '/', port: 3000, variables: [], isMachine: false, ...changes });

const made = async (files: Record<string, string>, changes: { isMachine?: boolean; variables?: string[] } = {}) =>
  make(inMemory(files), changes);

const failure = async (files: Record<string, string>) => {
  const error = await made(files).catch((caught: unknown) => caught);
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
      JSON.parse(/^CMD (.*)$/m.exec((await project(own, others)).text)![1]!)[2].replace(/^export PATH="[^"]*"; /, '');
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
    expect([language, JSON.parse(/^CMD (.*)$/m.exec(text)![1]!)[2]]).toEqual([
      'PYTHON',
      `export PATH="$PWD/.venv/bin:$PATH"; exec ${command}`,
    ]);
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
  const go = { 'go.mod': 'module a\n\ngo 1.24.1\n', 'go.sum': '' };
  expect((await made({ ...go, 'cmd/web/main.go': '' })).text).toContain('out/app ./cmd/web');
  expect((await made({ ...go, 'main.go': '', 'cmd/web/main.go': '' })).text).toMatch(/out\/app \.$/m);
  expect((await made({ ...go, 'main.go': '', 'templates/a.html': '' })).text).toContain(
    'COPY --chown=65532:65532 templates/ templates/',
  );
  expect(await failure({ ...go, 'cmd/a/main.go': '', 'cmd/b/main.go': '' })).toContain(
    'several programs below cmd (a/, b/)',
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

test('files that are long and say nothing hold up nobody', async () => {
  const long = { newlines: '\n'.repeat(500_000), blanks: ' '.repeat(500_000), words: 'ruby\n'.repeat(100_000) };
  for (const text of Object.values(long)) {
    const begun = performance.now();
    const files = { 'manage.py': text, 'main.py': text, 'requirements.txt': text, Procfile: text, '.nvmrc': text };
    for (const own of [
      files,
      { ...files, Gemfile: text, 'Gemfile.lock': text },
      { 'pom.xml': text },
      { 'go.mod': text },
    ])
      await made(own as Record<string, string>).catch((error: unknown) => expect(error).toBeInstanceOf(Error));
    expect(performance.now() - begun).toBeLessThan(20_000);
  }
});

test('what is no project says which are', async () => {
  expect(await failure({ 'README.md': '' })).toContain('No project is recognised there: Node.js, Python');
});
