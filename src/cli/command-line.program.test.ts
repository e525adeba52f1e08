import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { createRuntimes } from '#app/runtimes.ts';
import { ON_FREE_PORTS, runProgram, startService } from '#cli/testing.ts';
import { embeddedPostmaster, inspectEmbeddedPostgres } from '#platform/database/embedded.ts';
import { readSettings } from '#platform/settings/index.ts';
import { secretOf } from '#test/harness/tokens.ts';
import { pino } from 'pino';

const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-cli-'));
chmodSync(dataDir, 0o755);
const SETTINGS = {
  QUARTERDECK_DATA_DIR: dataDir,
  ...ON_FREE_PORTS,
};

afterAll(async () => {
  const settings = readSettings(SETTINGS);
  await createRuntimes(settings, 'test', pino({ level: 'silent' })).endProxy();
  rmSync(dataDir, { recursive: true, force: true });
});

/** The real program with a data directory of this file. */
const run = (args: string[], extra: Record<string, string> = {}) => runProgram(args, { ...SETTINGS, ...extra });

/** The service; some tests kill it. */
const start = () => startService(SETTINGS, { isKilled: true });

const me = (url: string, token: string) =>
  fetch(`${url}/organization`, { headers: { authorization: `Token ${token.trim()}` } }).then((answer) => answer.status);

test('what is used wrongly ends with status 2 and says what would be right', async () => {
  const [command, token, both, settings] = await Promise.all([
    run(['strat']),
    run(['token', 'create', '--name', 'x']),
    run(['demo', '--keep', '--remove']),
    run(['migrate'], { QUARTERDECK_PORT: 'x', QUARTERDECK_ROLE: 'y' }),
  ]);
  expect([command, token, both, settings].map(({ status }) => status)).toEqual([2, 2, 2, 2]);
  expect(command.stderr).toMatch(/Unknown command "strat"\. Commands: start, migrate, doctor,.* version, proxy, /);
  expect(token.stderr).toContain('--scope');
  expect(settings.stderr).toMatch(/QUARTERDECK_PORT=x: must be a whole number.*\n.*QUARTERDECK_ROLE=y: must be one of/);
});

test('version prints the versions of the program, of Node.js and of the embedded PostgreSQL, whatever the settings', async () => {
  const { status, stdout } = await run(['version'], { QUARTERDECK_PORT: 'x' });
  const { version } = JSON.parse(readFileSync(path.join(import.meta.dirname, '../../package.json'), 'utf8'));
  expect(status).toBe(0);
  expect(stdout.split('\n')).toEqual([
    `quarterdeck ${version}`,
    `Node.js ${process.versions.node}`,
    expect.stringMatching(/^PostgreSQL 18\.\d+ \(embedded\)$/),
    '',
  ]);
});

test('dockerfile prints the Dockerfile of a folder, or ends with status 1 and says what would help', async () => {
  const example = path.join(import.meta.dirname, '../../examples/projects/go');
  const [made, nothing, none, port] = await Promise.all([
    run(['dockerfile', example, '--port', '4000', '--machine']),
    run(['dockerfile', dataDir]),
    run(['dockerfile', path.join(dataDir, 'nowhere')]),
    run(['dockerfile', example, '--port', '70000']),
  ]);
  expect(made).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('ENV PORT=4000\n') });
  expect(made.stdout).toContain('This machine has no');
  expect(nothing).toMatchObject({ status: 1, stderr: expect.stringContaining('No project is recognised there') });
  expect(none).toMatchObject({ status: 1, stderr: expect.stringContaining('is not a folder') });
  expect(port).toMatchObject({ status: 2, stderr: expect.stringContaining('It must be a port from 1 to 65535.') });
});

test('dockerfile makes that of a job or of a part of a workspace, and says which Dockerfile is used instead', async () => {
  const examples = path.join(import.meta.dirname, '../../examples');
  const [job, part, both, used, outside] = await Promise.all([
    run(['dockerfile', path.join(examples, 'projects/node'), '--job', '--command']),
    run(['dockerfile', path.join(examples, 'workspaces/npm'), '--root', 'apps/web']),
    run(['dockerfile', path.join(examples, 'projects/node'), '--job', '--port', '80']),
    run(['dockerfile', path.join(examples, 'hello')]),
    run(['dockerfile', path.join(examples, 'hello'), '--root', 'nowhere']),
  ]);
  expect(job).toMatchObject({ status: 0, stderr: '', stdout: expect.not.stringContaining('PORT') });
  expect(part).toMatchObject({ status: 0, stdout: expect.stringContaining('WORKDIR /app/apps/web\n') });
  expect(both).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("'--job' cannot be used with option '--port"),
  });
  expect(used).toMatchObject({ status: 0, stdout: expect.stringMatching(/^# Recognised by/) });
  expect(used.stderr).toMatch(/^There is a \S+hello\/Dockerfile: services use that, and not the one/);
  expect(outside).toMatchObject({ status: 1, stderr: expect.stringContaining('is not a folder') });
});

test('doctor says that the built-in proxy serves no HTTPS, and what to install for it', async () => {
  const { stdout } = await run(['doctor']);
  expect(stdout).toMatch(/✓ proxy +built-in/);
  expect(stdout).toMatch(/- HTTPS +not served by the built-in proxy\n +Install Caddy .*QUARTERDECK_PROXY=caddy/);
});

test('a database that does not answer makes doctor end with status 1, and it still tells the rest', async () => {
  const { status, stdout, stderr } = await run(['doctor'], { DATABASE_URL: 'postgres://a:hunter22@127.0.0.1:1/x' });
  expect(status).toBe(1);
  expect(stdout).toMatch(/✗ PostgreSQL +DATABASE_URL does not answer: .*ECONNREFUSED/);
  expect(stdout).toMatch(/✓ git +git version/);
  expect(stderr).toContain('the service cannot run: PostgreSQL');
  expect(stdout + stderr).not.toContain('hunter22');
});

test('a command names DATABASE_URL where that database takes no connection', async () => {
  const { status, stdout, stderr } = await run(['migrate'], { DATABASE_URL: 'postgres://a:hunter22@127.0.0.1:1/x' });
  expect(status).toBe(1);
  expect(stderr).toMatch(/quarterdeck: DATABASE_URL: the PostgreSQL at 127\.0\.0\.1:1 cannot be used: .*ECONNREFUSED/);
  expect(stdout + stderr).not.toContain('hunter22');
});

const nowInSeconds = () => Math.floor(Date.now() / 1000);

/** Output of a shell into which the printed lines are pasted, all but those that deploy; ends with the application's id. */
function paste(shown: string) {
  const lines = shown.split('\n').map((line) => line.trim());
  const [from, to] = ['QD=', 'APPLICATION='].map((start) => lines.findIndex((line) => line.startsWith(start)));
  const script = [...lines.slice(from, to! + 1), 'echo "$APPLICATION"'].join('\n');
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8', timeout: 20_000 });
  return { stdout, stderr };
}

test(
  'an installation from nothing: migrate, start, tokens, doctor, a killed database, a killed service, and the end',
  { timeout: 120_000 },
  async () => {
    const postgres = path.join(dataDir, 'postgres');
    expect((await run(['migrate'])).stdout).toMatch(/^Applied \d+ migrations:\n {2}0001_/);
    expect((await run(['migrate'])).stdout).toContain('nothing to do');
    expect(inspectEmbeddedPostgres(postgres).running).toBeNull();
    expect(await run(['token', 'list'])).toMatchObject({ status: 1, stderr: expect.stringContaining('`npm start`') });

    const first = await start();
    const shown = await first.says(/curl -sS "http:\/\/app-z.*/);
    const admin = readFileSync(path.join(dataDir, 'admin-token'), 'utf8').trim();
    // What is no terminal may be a log: the token stays in its file.
    expect(shown).not.toContain(admin);
    expect(shown).toContain(`.localhost:${first.proxyPort}/"`);
    expect(await me(first.url, admin)).toBe(200);
    const pasted = paste(shown);
    const before = nowInSeconds();
    await vi.waitFor(() => expect(nowInSeconds()).toBeGreaterThan(before), { timeout: 40_000 });
    const again = paste(shown);
    expect([pasted, again]).toEqual(Array(2).fill({ stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/), stderr: '' }));
    expect(again.stdout).not.toBe(pasted.stdout);

    // Commands beside a running service leave its database running.
    expect((await run(['doctor'])).stdout).toMatch(/✓ PostgreSQL +18\S*, embedded, answers/);
    const made = await run(['token', 'create', '--name', 'ci', '--scope', 'read', '--expires', '2999-01-31']);
    expect(made).toMatchObject({ status: 0, stdout: expect.stringMatching(/^qd_\S+\n$/) });
    expect(await me(first.url, made.stdout)).toBe(200);
    const refused = await run(['token', 'create', '--name', 'CI', '--scope', 'READ']);
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    const list = await run(['token', 'list']);
    expect(list.stdout).toMatch(/ ci +READ +until 2999-01-31T00:00:00.000Z/);
    expect(list.stdout).not.toContain(secretOf(made.stdout));
    expect((await run(['token', 'revoke', 'ci'])).status).toBe(0);
    expect(await me(first.url, made.stdout)).toBe(401);
    expect(await run(['token', 'revoke', 'ci'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('not found'),
    });

    const killed = embeddedPostmaster(postgres)!;
    process.kill(killed, 'SIGKILL');
    await vi.waitFor(() => expect([undefined, killed]).not.toContain(embeddedPostmaster(postgres)), {
      timeout: 30_000,
    });
    await vi.waitFor(async () => expect(await me(first.url, admin)).toBe(200), { timeout: 40_000 });

    first.kill('SIGKILL');
    await first.ended;
    const second = await start();
    expect(second.said.stdout).not.toContain(admin);
    expect(await me(second.url, admin)).toBe(200);
    second.kill('SIGTERM');
    expect(await second.ended).toBe(0);
    expect(inspectEmbeddedPostgres(postgres).running).toBeNull();
  },
);

test('a port that is in use is told in one line that names the setting', { timeout: 60_000 }, async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  onTestFinished(() => void other.close());
  const port = (other.address() as AddressInfo).port;
  for (const name of ['QUARTERDECK_PORT', 'QUARTERDECK_OPERATIONS_PORT', 'QUARTERDECK_PROXY_PORT']) {
    const { status, stderr } = await run(['start'], { [name]: String(port) });
    expect(status).toBe(1);
    expect(stderr.split('\n').filter((line) => line.startsWith('quarterdeck:'))).toEqual([
      `quarterdeck: ${name}=${port}: another program listens on 127.0.0.1:${port}. End it or set another port.`,
    ]);
  }
});

test('proxy stop ends the proxy that a stopped service leaves', { timeout: 60_000 }, async () => {
  const { kill, ended, proxyPort } = await start();
  const answers = () =>
    fetch(`http://127.0.0.1:${proxyPort}/`).then(
      () => true,
      () => false,
    );
  kill('SIGTERM');
  expect(await ended).toBe(0);
  expect(await answers()).toBe(true);
  expect(await run(['proxy', 'stop'])).toMatchObject({ status: 0, stdout: 'The proxy has ended.\n' });
  expect(await answers()).toBe(false);
});

test('demo deploys the example, shows what it answers and removes it again', { timeout: 120_000 }, async () => {
  const { status, stdout, stderr } = await run(['demo', '--remove']);
  expect({ status, stderr }).toMatchObject({ status: 0 });
  expect(stdout).toMatch(/http:\/\/app-z\w{8}\.localhost:\d+/);
  expect(stdout).toMatch(/"hostname":"app-z\w{8}"/);
  expect(inspectEmbeddedPostgres(path.join(dataDir, 'postgres')).running).toBeNull();
});

test('uninstall removes what is deployed and the data directory, and asks before', { timeout: 180_000 }, async () => {
  const kept = await run(['demo', '--keep']);
  const [url] = /http:\/\/app-z\w{8}\.localhost:\d+/.exec(kept.stdout) ?? [];
  expect(url, kept.stderr).toBeDefined();
  const address = new URL(url!);
  const answers = () =>
    fetch(`http://127.0.0.1:${address.port}/`, { headers: { host: address.host } }).then(
      ({ status }) => status,
      () => null,
    );
  expect(await run(['uninstall'])).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(/This removes for good:\n- \d services? with storage/),
    stderr: expect.stringContaining('`--yes` removes without asking'),
  });
  expect(existsSync(dataDir)).toBe(true);
  // Tests have the data directory for their home, which no installation of users has.
  const removed = await run(['uninstall', '--yes'], { HOME: tmpdir() });
  expect(removed, removed.stderr).toMatchObject({
    status: 0,
    stdout: expect.stringContaining(`Removed, with ${dataDir}. Remove the clone of Quarterdeck as well.`),
  });
  expect(existsSync(dataDir)).toBe(false);
  expect(await answers()).toBeNull();
  const left = spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).stdout.split('\n');
  expect(left.filter((line) => line.includes(dataDir))).toEqual([]);
  expect(await run(['uninstall', '--yes'])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(`There is no installation in ${dataDir}`),
  });
  // What the other tests of this file end with finds its folder.
  mkdirSync(dataDir);
});
