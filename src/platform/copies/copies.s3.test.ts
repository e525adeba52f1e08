import { randomBytes } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { verifyArchive } from '#platform/backup/archive-reader.ts';
import {
  checkCopy,
  CopyStore,
  copyTasks,
  fetchCopy,
  makeCopy,
  registerCopyGauges,
  removeOldCopies,
  type CopySource,
} from '#platform/copies/index.ts';
import { nameOfCopy } from '#platform/copies/store.ts';
import { readSettings, type Settings } from '#platform/settings/index.ts';
import { openInstallation, readVaultKeys } from '#platform/vault/key.ts';
import { useApp } from '#test/harness/app.ts';
import { S3_KEYS, startStore, type TestStore } from '#test/harness/s3.ts';

const app = useApp();
const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-copies-'));
const { signal } = new AbortController();
let store: TestStore;
let installationId: string;
const TEXT = `words that only this project has ${newId()}`;

const settingsWith = (change: Record<string, string> = {}): Settings =>
  readSettings({
    QUARTERDECK_DATA_DIR: dataDir,
    QUARTERDECK_COPIES_URL: store.url,
    QUARTERDECK_COPIES_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
    QUARTERDECK_COPIES_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
    ...change,
  });
const sourceWith = (change: Record<string, string> = {}, until = signal): CopySource => ({
  settings: settingsWith(change),
  db: app.db,
  directConfig: app.databaseConfig,
  signal: until,
});
const open = (change: Record<string, string> = {}, until = signal) => CopyStore.open(settingsWith(change), until);
const objects = () =>
  readdirSync(store.folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
const rows = () => app.db.selectFrom('installation_copy').selectAll().orderBy('taken_at').execute();

/** Names of the scratch databases that are there. */
async function scratches(): Promise<string[]> {
  const client = new pg.Client(app.databaseConfig);
  await client.connect();
  const found = await client.query<{ name: string }>(
    `select datname::text as name from pg_database where datname like 'quarterdeck\\_check\\_%'`,
  );
  await client.end();
  return found.rows.map(({ name }) => name);
}

beforeAll(async () => {
  store = await startStore();
  // The installation of the tests is made anew with a key of its own file.
  await app.db.deleteFrom('installation').execute();
  ({ installationId } = await openInstallation(app.db, readVaultKeys(path.join(dataDir, 'vault.key'), true)));
  const admin = await app.organization();
  await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p', description: TEXT });
  await app.db.deleteFrom('organization').where('id', '!=', admin.organizationId).execute();
  const key = readVaultKeys(path.join(dataDir, 'vault.key'), false);
  const { vault } = await openInstallation(app.db, key);
  await app.db
    .updateTable('organization')
    .set({ data_key: vault.newDataKey(admin.organizationId) })
    .execute();
});
afterEach(async () => {
  for (const file of objects()) rmSync(file);
  await app.db.deleteFrom('installation_copy').execute();
});
afterAll(async () => {
  await store.stop();
  rmSync(dataDir, { recursive: true });
});

test('a copy holds the whole installation, and nothing in the store can be read', async () => {
  const copy = await makeCopy(sourceWith(), await open());
  expect(copy).toMatchObject({ installationId, name: nameOfCopy(installationId, copy.takenAt) });
  const [file] = objects();
  expect(path.relative(store.folder, file!)).toBe(path.join('quarterdeck', copy.name));
  const content = readFileSync(file!);
  expect(content.length).toBe(copy.bytes);
  expect(content.includes(TEXT)).toBe(false);
  expect(await (await open()).list()).toMatchObject([{ name: copy.name, bytes: copy.bytes, installationId }]);
  expect(await rows()).toMatchObject([{ name: copy.name, checked_at: null }]);

  const fetched = path.join(dataDir, 'fetched');
  await fetchCopy({ settings: settingsWith(), signal }, await open(), copy.name, fetched);
  const manifest = await verifyArchive(fetched);
  expect(manifest.installation.id).toBe(installationId);
  expect(manifest.tables.find(({ name }) => name === 'project')).toMatchObject({ rows: 1 });

  const checked = await checkCopy(sourceWith(), await open(), copy.name);
  expect(checked.takenAt).toBe(manifest.takenAt);
  expect(await rows()).toMatchObject([{ checked_at: expect.any(Date), check_error: null }]);
  expect(await scratches()).toEqual([]);
  expect(readdirSync(path.join(dataDir, 'copies'))).toEqual([]);
});

test('a file of several parts arrives whole', async () => {
  const file = path.join(dataDir, 'large');
  const content = randomBytes(40 * 1024 * 1024);
  writeFileSync(file, content);
  const name = nameOfCopy(newId(), new Date());
  await (await open()).put(name, file);
  await (await open()).fetch(name, path.join(dataDir, 'large2'));
  expect(readFileSync(path.join(dataDir, 'large2')).equals(content)).toBe(true);
});

test('a copy that was changed, cut off or belongs to another key is found by its check, which is recorded', async () => {
  const copy = await makeCopy(sourceWith(), await open());
  const [file] = objects();
  const content = readFileSync(file!);
  truncateSync(file!, content.length - 100);
  await expect(checkCopy(sourceWith(), await open(), copy.name)).rejects.toThrow('or the copy was changed');
  expect(await rows()).toMatchObject([{ check_error: expect.stringContaining('or the copy was changed') }]);
  writeFileSync(file!, content);
  const elsewhere = mkdtempSync(path.join(dataDir, 'other-'));
  readVaultKeys(path.join(elsewhere, 'vault.key'), true);
  const strange = sourceWith({ QUARTERDECK_DATA_DIR: elsewhere });
  await expect(checkCopy(strange, await open(), copy.name)).rejects.toThrow('the key file of the vault lacks the key');
  await checkCopy(sourceWith(), await open(), copy.name);
  expect(await rows()).toMatchObject([{ check_error: null }]);
  expect(await scratches()).toEqual([]);
});

test('old copies go, the newest three and those of others stay', async () => {
  const day = 86_400_000;
  const now = new Date('2026-06-01T00:00:00Z');
  const stranger = newId();
  const ages = [1, 29, 31, 50, 400];
  const names = ages.map((age) => nameOfCopy(installationId, new Date(now.getTime() - age * day)));
  const others = [nameOfCopy(stranger, new Date(now.getTime() - 900 * day)), `${installationId}/notes.txt`];
  for (const name of [...names, ...others]) {
    const file = path.join(store.folder, 'quarterdeck', name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, 'x');
  }
  await app.db
    .insertInto('installation_copy')
    .values(names.map((name) => ({ name, taken_at: now, bytes: 1 })))
    .execute();
  const removed = await removeOldCopies(sourceWith(), await open(), installationId, now);
  expect(removed.map(({ name }) => name)).toEqual(names.slice(3));
  const left = objects().map((file) => path.relative(path.join(store.folder, 'quarterdeck'), file));
  expect(left.toSorted()).toEqual([...names.slice(0, 3), ...others].toSorted());
  expect((await rows()).map(({ name }) => name).toSorted()).toEqual(names.slice(0, 3).toSorted());
});

test('a copy that the store keeps holds up no other one, and is told', async () => {
  const now = new Date('2026-06-01T00:00:00Z');
  const names = [1, 2, 3, 40, 50].map((age) => nameOfCopy(installationId, new Date(now.getTime() - age * 86_400_000)));
  for (const name of names) {
    const file = path.join(store.folder, 'quarterdeck', name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, 'x');
  }
  const real = await open();
  const keeping = {
    list: () => real.list(),
    remove: async (name: string) => {
      if (name === names[3]) throw new Error('the store keeps it');
      await real.remove(name);
    },
    endAbandonedUploads: (...args: Parameters<CopyStore['endAbandonedUploads']>) => real.endAbandonedUploads(...args),
  } as CopyStore;
  await expect(removeOldCopies(sourceWith(), keeping, installationId, now)).rejects.toThrow('the store keeps it');
  const left = objects().map((file) => path.relative(path.join(store.folder, 'quarterdeck'), file));
  expect(left.toSorted()).toEqual(names.slice(0, 4).toSorted());
});

test('uploads that killed processes have left are ended, those of others and of today stay', async () => {
  const { S3mini } = await import('s3mini');
  const s3 = new S3mini({ endpoint: store.url, region: 'us-east-1', ...S3_KEYS });
  const keys = [`${installationId}/a`, `${installationId}/b`, `${newId()}/c`].map((name) => `quarterdeck/${name}`);
  const uploads = await Promise.all(keys.map((key) => s3.getMultipartUploadId(key)));
  const opened = await open();
  const later = new Date(Date.now() + 60_000);
  expect(await opened.endAbandonedUploads(installationId, new Date(Date.now() - 60_000))).toBe(0);
  expect(await opened.endAbandonedUploads(installationId, later)).toBe(2);
  expect(await opened.endAbandonedUploads(installationId, later)).toBe(0);
  await s3.abortMultipartUpload(keys[2]!, uploads[2]!);
});

test.each([
  ['a wrong secret', { QUARTERDECK_COPIES_SECRET_ACCESS_KEY: 'wrong' }, /cannot be listed: it answered 403/],
  ['another region', { QUARTERDECK_COPIES_REGION: 'eu-west-9' }, /cannot be listed: it answered 40[03]/],
  [
    'an unknown account',
    { QUARTERDECK_COPIES_ACCESS_KEY_ID: 'bob' },
    /no bucket at \S+ for this account: .* QUARTERDECK_COPIES_ACCESS_KEY_ID/,
  ],
  ['an address without a store', { QUARTERDECK_COPIES_URL: 'http://127.0.0.1:9/bucket' }, /cannot be listed: /],
] as const)('%s is told with what to look at, and not the secret', async (_name, change, message) => {
  const asked = (await open(change)).list();
  await expect(asked).rejects.toThrow(message);
  await asked.catch((error: Error) => expect(error.message).not.toContain('wrong'));
});

test('a bucket that is not there is told', async () => {
  const url = store.url.replace(/bucket$/, 'none');
  await expect((await open({ QUARTERDECK_COPIES_URL: url })).list()).rejects.toThrow(
    `There is no bucket at ${url} for this account: make it`,
  );
});

test('a store that accepts and says nothing is left when the task must end', async () => {
  const silent = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const ending = new AbortController();
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/bucket`;
  const connected = once(silent, 'connection');
  const made = makeCopy(
    sourceWith({ QUARTERDECK_COPIES_URL: url }, ending.signal),
    await open({ QUARTERDECK_COPIES_URL: url }, ending.signal),
  );
  const [socket] = (await connected) as [import('node:net').Socket];
  ending.abort();
  await expect(made).rejects.toThrow('cannot be written to');
  expect(readdirSync(path.join(dataDir, 'copies'))).toEqual([]);
  expect(await rows()).toEqual([]);
  socket.destroy();
  silent.close();
});

test('the task makes a copy when one is due, tries again what failed, and checks from time to time', async () => {
  const HOUR = 3_600_000;
  let now = new Date('2030-01-01T00:00:00Z').getTime();
  const platform = (change: Record<string, string> = {}) => ({
    ...app.platform,
    settings: settingsWith(change),
    clock: { now: () => new Date(now) },
  });
  expect(copyTasks({ copiesUrl: '' }, app.databaseConfig)).toEqual([]);
  const [task] = copyTasks(settingsWith(), app.databaseConfig);
  const [old, recent] = ['old', 'recent'].map((name) => path.join(dataDir, 'copies', name));
  for (const folder of [old!, recent!]) mkdirSync(folder, { recursive: true });
  utimesSync(old!, 0, 0);
  const looked = async () => (await rows()).map(({ checked_at }) => checked_at !== null);
  await expect(task!.run(platform({ QUARTERDECK_COPIES_SECRET_ACCESS_KEY: 'wrong' }), signal)).rejects.toThrow('403');
  expect(await looked()).toEqual([]);
  await task!.run(platform(), signal);
  expect(await looked()).toEqual([true]);
  // Taken just now by the clock of the database: as if that were the clock of the test.
  await app.db
    .updateTable('installation_copy')
    .set({ taken_at: new Date(now), checked_at: new Date(now) })
    .execute();
  now += 23 * HOUR;
  await task!.run(platform(), signal);
  expect(await looked()).toEqual([true]);
  now += 2 * HOUR;
  await task!.run(platform(), signal);
  expect(await looked()).toEqual([true, false].toSorted());
  await task!.run(platform({ QUARTERDECK_COPY_HOURS: '1', QUARTERDECK_COPY_CHECK_DAYS: '1' }), signal);
  expect(objects()).toHaveLength((await rows()).length);
  // The last check is older than a day: the new copy was checked, too.
  expect((await looked()).filter(Boolean)).toHaveLength(2);
  expect(readdirSync(path.join(dataDir, 'copies'))).toEqual(['recent']);
  rmSync(recent!, { recursive: true });
});

test('Prometheus sees when the last copy was taken and when one was found good', async () => {
  const registry = new Registry();
  registerCopyGauges(registry, app.db);
  expect(await registry.metrics()).not.toMatch(/^quarterdeck_copy_taken_timestamp_seconds \d/m);
  await app.db
    .insertInto('installation_copy')
    .values([
      { name: 'a', taken_at: new Date(1_000_000), bytes: 1, checked_at: new Date(2_000_000) },
      { name: 'b', taken_at: new Date(3_000_000), bytes: 1, checked_at: new Date(4_000_000), check_error: 'broken' },
    ])
    .execute();
  const text = await registry.metrics();
  expect(text).toContain('\nquarterdeck_copy_taken_timestamp_seconds 3000\n');
  expect(text).toContain('\nquarterdeck_copy_checked_timestamp_seconds 2000\n');
});
