import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { archiveOf } from '#kernel/parsing/archive.fixture.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { Git } from '#runtimes/tools/git/index.ts';
import { FolderStore, type FolderGit } from '#services/sources/uploads/store.ts';
import { useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();

const request = () => Promise.reject(new Error('nothing is asked for'));
const workDirectory = () => path.join(app.platform.settings.dataDir, 'git');
const git = (change: Partial<FolderGit> = {}): FolderGit => {
  const real = new Git({ localRoots: [], request, workDirectory: workDirectory() });
  return {
    importFolder: (signal, write, keep) => real.importFolder(signal, write, keep),
    unpackFolder: (source, fetch) => real.unpackFolder(source, fetch),
    ...change,
  };
};

async function make() {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  const of = { organizationId: admin.organizationId, serviceId: application.id as string };
  const folder = (body: Readable, signal = new AbortController().signal) => ({ ...of, body, author: 'a', signal });
  const uploads = () => app.db.selectFrom('source_upload').selectAll().where('service_id', '=', of.serviceId).execute();
  return { of, folder, uploads };
}

const bodyOf = async (text: string) => Readable.from([await archiveOf(['a', text])], { objectMode: false });

test('uploads of a service are read one after the other, and of an organization two at a time', async () => {
  const store = new FolderStore(app.platform, git());
  const one = await make();
  const first = new PassThrough();
  const begun = store.store(one.folder(first));
  await expect.poll(() => first.listenerCount('data')).toBeGreaterThan(0);
  const second = await bodyOf('second');
  const waits = store.store(one.folder(second));
  const other = await make();
  await store.store(other.folder(await bodyOf('other')));
  expect(second.listenerCount('data')).toBe(0);
  first.end(await archiveOf(['a', 'first']));
  expect((await begun).commitId).not.toBe((await waits).commitId);
  expect(await one.uploads()).toHaveLength(2);
});

test('an upload that is given up while it is stored is removed', async () => {
  const { folder, uploads } = await make();
  const stopped = git({
    importFolder: (signal, write, keep) =>
      git().importFolder(signal, write, (packed) => keep(packed, AbortSignal.abort())),
  });
  await expect(new FolderStore(app.platform, stopped).store(folder(await bodyOf('x')))).rejects.toThrow('aborted');
  expect(await uploads()).toEqual([]);
  const stop = new AbortController();
  const body = new PassThrough();
  const work = new FolderStore(app.platform, git()).store(folder(body, stop.signal));
  await expect.poll(() => body.listenerCount('data')).toBeGreaterThan(0);
  stop.abort();
  await expect(work).rejects.toMatchObject({ code: 'bad_request' });
  expect(await uploads()).toEqual([]);
  expect(readdirSync(workDirectory())).toEqual([]);
});

test('an upload for a service that is deleted meanwhile is refused with 409', async () => {
  const { of, folder } = await make();
  const gone = { ...folder(await bodyOf('x')), ...of, serviceId: newId() };
  await expect(new FolderStore(app.platform, git()).store(gone)).rejects.toMatchObject({ code: 'conflict' });
});

test('what git does not take is 400, and what this machine cannot do now is 503', async () => {
  const { folder } = await make();
  const failing = (error: Error) =>
    new FolderStore(app.platform, git({ importFolder: () => Promise.reject(error) })).store(folder(new PassThrough()));
  await expect(failing(new RuntimeError('refused', "git does not take it: invalid path 'x'"))).rejects.toMatchObject({
    code: 'bad_request',
    message: "archive: git does not take it: invalid path 'x'",
  });
  await expect(failing(new RuntimeError('failed', 'The disk is full.'))).rejects.toMatchObject({
    code: 'unavailable',
    message: 'The folder cannot be read now: The disk is full.',
  });
});

test('the start of the program removes what killed uploads have left', () => {
  const left = path.join(workDirectory(), 'x.4194303-0123456789ab.work');
  mkdirSync(left, { recursive: true });
  createSources(app.platform);
  expect(readdirSync(workDirectory())).toEqual([]);
});
