import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Git } from '#runtimes/tools/git/index.ts';
import { removeAbandoned, workFolder } from '#runtimes/tools/work-folders.ts';

let workDirectory: string;
beforeEach(() => void (workDirectory = path.join(mkdtempSync(path.join(tmpdir(), 'qd-folders-')), 'git')));
afterEach(() => rmSync(path.dirname(workDirectory), { recursive: true, force: true }));

const request = () => Promise.reject(new Error('nothing is asked for'));
const make = (reservedBytes = 0) =>
  new Git({ localRoots: [], request, workDirectory, disk: { mostBytes: 1, reservedBytes } });

/** Stream of `git fast-import` with one entry. */
const streamOf = (entry: string) =>
  `blob\nmark :1\ndata 1\nx\ncommit refs/heads/folder\nauthor a <> 1 +0000\ncommitter a <> 1 +0000\ndata 1\nm\n${entry}\ndone\n`;

const importing = (entry: string, reservedBytes?: number) =>
  make(reservedBytes).importFolder(
    new AbortController().signal,
    (file) => writeFile(file, streamOf(entry)),
    async ({ commit, pack }) => ({ commit, pack: readFileSync(pack) }),
  );

test('a folder becomes a commit whose pack can be checked out, and leaves nothing of the work', async () => {
  const { commit, pack } = await importing('M 100755 :1 "bin/run"');
  expect(readdirSync(workDirectory)).toEqual([]);
  const directory = path.join(path.dirname(workDirectory), 'checkout');
  const git = new Git({ localRoots: [], request, workDirectory });
  await git.unpackFolder({ commit, directory, signal: new AbortController().signal }, (file) => writeFile(file, pack));
  expect(readFileSync(path.join(directory, 'bin/run'), 'utf8')).toBe('x');
  expect(existsSync(path.join(directory, '.git'))).toBe(false);
});

test.each([
  ['M 120000 :1 "a/gitmod~1"', "invalid path 'a/gitmod~1'"],
  ['M 100644 :1 "a/.g\u200cit/config"', 'invalid path'],
  ['M 100644 :1 "a/../../x"', 'does not take it: '],
  ['M 100644 :1 ".git/hooks/post-checkout"', "invalid path '.git/hooks/post-checkout'"],
])('what git would not check out is refused when it is imported: %s', async (entry, message) => {
  await expect(importing(entry)).rejects.toMatchObject({ code: 'refused', message: expect.stringContaining(message) });
  expect(readdirSync(workDirectory)).toEqual([]);
});

test('nothing is read while the disk has less than its reserve, which is no fault of the folder', async () => {
  const read: string[] = [];
  const work = make(2 ** 60).importFolder(
    new AbortController().signal,
    async (file) => void read.push(file),
    async () => 'kept',
  );
  await expect(work).rejects.toMatchObject({
    code: 'failed',
    message: expect.stringContaining('the operator keeps free'),
  });
  expect(read).toEqual([]);
});

test('folders of work whose process is gone are removed, those of this process stay', () => {
  const own = workFolder(path.join(workDirectory, 'own'));
  const dead = path.join(workDirectory, 'dead.4194303-0123456789ab.work');
  for (const folder of [own, dead, path.join(workDirectory, 'other')]) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, 'file'), '');
  }
  removeAbandoned(workDirectory);
  expect(readdirSync(workDirectory).sort()).toEqual(['other', path.basename(own)]);
});

test('work of another container that shares the folder stays for a day, whose process cannot be seen', () => {
  const own = path.basename(workFolder(path.join(workDirectory, 'own')));
  const other = own.replace(/\.\d+-\d+-[0-9a-f]+/, '.4194303-1-0123456789ab');
  expect(other).not.toBe(own);
  for (const folder of [own, other]) mkdirSync(path.join(workDirectory, folder), { recursive: true });
  const left = (hours: number) => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3600_000 });
    removeAbandoned(workDirectory);
    vi.useRealTimers();
    return readdirSync(workDirectory).sort();
  };
  expect(left(23)).toEqual([other, own].sort());
  expect(left(25)).toEqual([own]);
});
