import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readSettings, SettingsError } from '#platform/settings/index.ts';
import { settingsPage } from '../../scripts/settings-page.ts';

function problemsOf(environment: Record<string, string>): string[] {
  try {
    readSettings(environment);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

function file(text: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'qd-settings-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(path.join(folder, 'settings.json'), text);
  return path.join(folder, 'settings.json');
}

test('docs/settings.md is what `npm run gen` makes, and names no folder of the machine it was made on', async () => {
  const page = readFileSync('docs/settings.md', 'utf8');
  expect(page).toBe(await settingsPage());
  expect(page).not.toContain(process.cwd());
});

test('data are temporary only with a PostgreSQL elsewhere, and where nothing runs on the machine', () => {
  expect(problemsOf({ QUARTERDECK_TEMPORARY_DATA: 'true' })).toEqual([
    expect.stringContaining('must be false without DATABASE_URL'),
    expect.stringContaining('must be false unless QUARTERDECK_RUNTIME=kubernetes'),
  ]);
  const elsewhere = { QUARTERDECK_TEMPORARY_DATA: 'true', DATABASE_URL: 'postgres://a:b@c/d' };
  expect(problemsOf({ ...elsewhere, QUARTERDECK_RUNTIME: 'docker' })).toHaveLength(1);
  expect(problemsOf({ ...elsewhere, QUARTERDECK_RUNTIME: 'kubernetes' })).toEqual([]);
});

test('all wrong settings are told together, each with what would be right', () => {
  const problems = problemsOf({
    QUARTERDECK_PORT: '70000',
    QUARTERDECK_ROLE: 'boss',
    QUARTERDECK_OPEN_ORGANIZATIONS: 'yes',
    QUARTERDECK_LOCAL_GIT_ROOTS: 'a/b',
    QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '10.0.0.1',
  });
  expect(problems).toEqual([
    'QUARTERDECK_PORT=70000: must be a whole number from 0 to 65535.',
    'QUARTERDECK_ROLE=boss: must be one of all, api, worker.',
    'QUARTERDECK_LOCAL_GIT_ROOTS=a/b: a/b must be an absolute path; separate several by colons.',
    'QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES=10.0.0.1: 10.0.0.1 must be a network as a CIDR (10.0.0.0/8); separate several by commas.',
    'QUARTERDECK_OPEN_ORGANIZATIONS=yes: must be one of true, false.',
  ]);
});

test('the URL of a machine has no path, which no request would take along', () => {
  for (const url of ['https://10.0.0.5/api', 'https://10.0.0.5:8080/?a=b', 'https://me:hunter22@10.0.0.5'])
    expect(problemsOf({ QUARTERDECK_MACHINE_URL: url })).toEqual([
      expect.stringMatching(/: must be a scheme, a host and a port alone, such as https:\/\/10\.0\.0\.5(:8080)?\.$/),
    ]);
  expect(readSettings({ QUARTERDECK_MACHINE_URL: 'https://10.0.0.5:443/' }).machineUrl).toBe('https://10.0.0.5');
});

test('a setting that was renamed is told by its new name', () => {
  expect(problemsOf({ QUARTERDECK_DATABASE_PORTS: '30000-30010' })).toEqual([
    'QUARTERDECK_DATABASE_PORTS is called QUARTERDECK_PUBLISHED_PORTS now.',
  ]);
});

test('a secret setting that is wrong is not shown', () => {
  const [problem, ...more] = problemsOf({ DATABASE_URL: 'mysql://me:hunter22@db' });
  expect(more).toEqual([]);
  expect(problem).toMatch(/^DATABASE_URL=…: must be a URL that begins with postgres/);
});

test('an unknown QUARTERDECK_ name is refused, whether in the environment or in the file', () => {
  const config = file('{"QUARTERDECK_PROT": 1}');
  expect(problemsOf({ QUARTERDECK_CONFIG: config, QUARTERDECK_HOTS: 'x', HOTS: 'x' })).toEqual([
    'QUARTERDECK_HOTS is not a setting: docs/settings.md lists them.',
    'QUARTERDECK_PROT is not a setting: docs/settings.md lists them.',
  ]);
});

test('the environment wins over the file, the file over the default, and an empty value is none', () => {
  const config = file(
    '{"QUARTERDECK_PORT": 9000, "QUARTERDECK_PROXY_PORT": 9002, "QUARTERDECK_OPEN_ORGANIZATIONS": true}',
  );
  const settings = readSettings({ QUARTERDECK_CONFIG: config, QUARTERDECK_PORT: '9001', QUARTERDECK_HOST: '' });
  expect(settings).toMatchObject({
    port: 9001,
    proxyPort: 9002,
    openOrganizations: true,
    operationsPort: 8081,
    host: '127.0.0.1',
  });
});

test.each([
  ['is missing', '/nowhere/settings.json', 'there is no such file.'],
  ['is no JSON', file.bind(null, '{'), 'not JSON'],
])('a settings file that %s is a problem that names it', (_what, given, complaint) => {
  const config = typeof given === 'string' ? given : given();
  expect(problemsOf({ QUARTERDECK_CONFIG: config })[0]).toContain(`QUARTERDECK_CONFIG=${config}: ${complaint}`);
});
