import { execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Program } from '#test/harness/program.ts';

const TOKEN = 'token-of-the-registry-2718';
const WHEEL = 'own-1.0-py3-none-any.whl';

/** Program that writes a wheel with one module: archives of Python are zip files. */
const MAKE_WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("own.py", "GREETING = 'Hello from a private package'\\n")
    wheel.writestr("own-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: own\\nVersion: 1.0\\n")
    wheel.writestr("own-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("own-1.0.dist-info/RECORD", "own.py,,\\nown-1.0.dist-info/METADATA,,\\nown-1.0.dist-info/WHEEL,,\\nown-1.0.dist-info/RECORD,,\\n")
`;

let program: Program;
let environment: string;
let folder: string;
let registry: Server;
let port: number;
const refused: string[] = [];
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'packages-'));
  const own = { name: '@acme/own', version: '1.0.0', main: 'index.js' };
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(own));
  writeFileSync(path.join(folder, 'index.js'), `module.exports = 'Hello from a private package';\n`);
  execFileSync('npm', ['pack', '--silent'], { cwd: folder });
  execFileSync('python3', ['-c', MAKE_WHEEL, path.join(folder, WHEEL)]);
  registry = createServer((request, response) => {
    const basic = `Basic ${Buffer.from(`reader:${TOKEN}`).toString('base64')}`;
    if (![`Bearer ${TOKEN}`, basic].includes(request.headers.authorization ?? '')) {
      refused.push(request.url!);
      return response.writeHead(401, { 'www-authenticate': 'Basic realm="packages"' }).end();
    }
    const tarball = `http://127.0.0.1:${port}/own.tgz`;
    const metadata = { ...own, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { ...own, dist: { tarball } } } };
    if (request.url === '/own.tgz') return response.end(readFileSync(path.join(folder, 'acme-own-1.0.0.tgz')));
    if (request.url === '/@acme%2fown') return response.end(JSON.stringify(metadata));
    if (request.url === '/simple/own/')
      return response.writeHead(200, { 'content-type': 'text/html' }).end(`<a href="/${WHEEL}">${WHEEL}</a>`);
    if (request.url === `/${WHEEL}`) return response.end(readFileSync(path.join(folder, WHEEL)));
    return response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => registry.once('listening', resolve));
  port = (registry.address() as AddressInfo).port;
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host' });
  const [organization] = (await program.ask('GET', '/organization')).results;
  const project = await program.ask('POST', `/organization/${organization.id}/project`, { name: 'shop' });
  environment = (await program.ask('POST', `/project/${project.id}/environment`, { name: 'dev' })).id;
});
afterAll(async () => {
  await program?.close();
  registry?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Files of projects whose only package is one of the registry, and the variable that has its token. */
const PROJECTS = {
  npm: () => ({
    key: 'NPM_TOKEN',
    files: {
      'package.json': JSON.stringify({ dependencies: { '@acme/own': '1.0.0' } }),
      '.npmrc': `@acme:registry=http://127.0.0.1:${port}/\n//127.0.0.1:${port}/:_authToken=\${NPM_TOKEN}\n`,
      'report.js': `console.log(require('@acme/own'));\n`,
    },
    words: ['node', 'report.js'],
  }),
  pip: () => ({
    key: 'PIP_TOKEN',
    files: {
      'requirements.txt': `--index-url http://reader:\${PIP_TOKEN}@127.0.0.1:${port}/simple\nown==1.0\n`,
      'report.py': `import own\nprint(own.GREETING)\n`,
    },
    words: ['python', 'report.py'],
  }),
};

async function deployJob(name: keyof typeof PROJECTS, token: string | null) {
  const { key, files, words } = PROJECTS[name]();
  const repository = program.makeRepository();
  repository.commit(files);
  const source = { docker: { git_repository: { url: repository.url, branch: 'main' } } };
  const body = {
    name: `${name} ${token === null ? 'without' : 'with'} token`,
    source,
    schedule: { on_start: { arguments: words } },
    healthchecks: {},
  };
  const { id } = await program.ask('POST', `/environment/${environment}/job`, body);
  if (token !== null) await program.ask('POST', `/job/${id}/secret`, { key, value: token });
  const status = await program.ask('POST', `/job/${id}/deploy?wait=240`);
  const log = JSON.stringify(await program.ask('GET', `/environment/${environment}/logs`));
  const [execution] = (await program.ask('GET', `/job/${id}/execution`)).results;
  const output = execution && JSON.stringify(await program.ask('GET', `/job/${id}/execution/${execution.id}/log`));
  return { key, log, output, ...status };
}

test.each(['npm', 'pip'] as const)(
  'a package of a registry that takes a token is installed by %s with a secret of the service, which no log shows',
  async (name) => {
    const { key, state, error, log, output } = await deployJob(name, TOKEN);
    expect(state, JSON.stringify(error, null, 1)).toBe('DEPLOYED');
    expect(output).toContain('Hello from a private package');
    expect(log).toContain(`--mount=type=secret,id=${key},env=${key}`);
    expect(log + output).not.toContain(TOKEN);
  },
  300_000,
);

test.each(['npm', 'pip'] as const)(
  'without the secret the installation by %s fails, as the registry refuses it',
  async (name) => {
    const before = refused.length;
    const { state, error } = await deployJob(name, null);
    expect({ state, code: error?.code }).toEqual({ state: 'BUILD_ERROR', code: 'BUILD_FAILED' });
    expect(refused.length).toBeGreaterThan(before);
  },
  300_000,
);
