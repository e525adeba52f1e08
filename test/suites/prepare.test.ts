import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';

const SCRIPTS = path.join(import.meta.dirname, '../../scripts');
const LOCK = '{"lockfileVersion": 3}';
const folder = mkdtempSync(path.join(tmpdir(), 'qd-prepare-'));
const [clone, elsewhere] = [path.join(folder, 'clone'), path.join(folder, 'elsewhere')];
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeEach(() => {
  for (const place of [clone, elsewhere]) rmSync(place, { recursive: true, force: true });
  mkdirSync(elsewhere);
  cpSync(SCRIPTS, path.join(clone, 'scripts'), { recursive: true });
  writeFileSync(path.join(clone, 'package-lock.json'), LOCK);
  cpSync(path.join(SCRIPTS, '../package.json'), path.join(clone, 'package.json'));
  // Stand-in for npm: prints its arguments, and makes the folder.
  writeFileSync(
    path.join(folder, 'npm.mjs'),
    `import { mkdirSync, writeFileSync } from 'node:fs';
mkdirSync('node_modules', { recursive: true });
writeFileSync('node_modules/installed', process.argv.slice(2).join(' '));`,
  );
});

/** Runs the preparation that every command of package.json begins with; it prints the path of the Node.js to use. */
const prepare = () =>
  spawnSync(process.execPath, ['-e', "import('./scripts/prepare.mjs').then(({ prepare }) => console.log(prepare()))"], {
    cwd: clone,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, npm_execpath: path.join(folder, 'npm.mjs') },
  });

describe('the first command in a clone', () => {
  test('installs the packages of the lock, and the next one does not', () => {
    expect(prepare()).toMatchObject({ status: 0, stderr: expect.stringContaining('Installing') });
    expect(existsSync(path.join(clone, 'node_modules/installed'))).toBe(true);
    expect(prepare()).toMatchObject({ status: 0, stderr: '', stdout: `${process.execPath}\n` });
  });

  test('installs nothing through a link to packages of another lock, and says what to do', () => {
    symlinkSync(elsewhere, path.join(clone, 'node_modules'));
    writeFileSync(path.join(elsewhere, '.quarterdeck-installed'), 'of another lock');
    const refused = prepare();
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toContain(`node_modules is a link to ${elsewhere}`);
    expect(refused.stderr).toContain('remove the link');
    expect(readdirSync(elsewhere)).toEqual(['.quarterdeck-installed']);
  });

  test('refuses a Node that is older than package.json says, where the packages bring none', () => {
    writeFileSync(path.join(clone, 'package.json'), '{"engines": {"node": ">=99.1"}}');
    const refused = prepare();
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toContain('Quarterdeck needs Node.js 99 or later');
    expect(refused.stderr).toContain(process.version);
  });

  test('takes packages behind a link that are those of its lock', () => {
    symlinkSync(elsewhere, path.join(clone, 'node_modules'));
    writeFileSync(path.join(elsewhere, '.quarterdeck-installed'), createHash('sha256').update(LOCK).digest('hex'));
    expect(prepare()).toMatchObject({ status: 0, stderr: '' });
    expect(readdirSync(elsewhere)).toEqual(['.quarterdeck-installed']);
  });
});
