import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { openDatabase, type OpenDatabase } from '#platform/database/index.ts';
import { createVault, type Vault } from '#platform/vault/index.ts';
import { openInstallation, promoteKey, readVaultKeys, rereadVaultKeys, stageKey } from '#platform/vault/key.ts';
import { answerPlace, countByKey, countOlder, rewrapOlder } from '#platform/vault/rotation.ts';
import { cloneDatabase } from '#test/harness/database.ts';

const ORGANIZATIONS = 450;
const folder = mkdtempSync(path.join(tmpdir(), 'qd-vault-'));
const file = path.join(folder, 'vault.key');
let clone: Awaited<ReturnType<typeof cloneDatabase>>;
let open: OpenDatabase;
let vault: Vault;

beforeAll(async () => {
  clone = await cloneDatabase(inject('postgres'), inject('template'));
  open = openDatabase({ config: { ...clone.config, max: 4 } });
  vault = (await openInstallation(open.db, readVaultKeys(file, true), () => rereadVaultKeys(file))).vault;
  for (let n = 0; n < ORGANIZATIONS; n++) await addOrganization();
});
afterAll(async () => {
  await open.close();
  await clone.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** An organization with a secret, as the reader expects it: at once, since the reader may look at any moment. */
const addOrganization = (): Promise<void> =>
  open.db.transaction().execute(async (db) => {
    const id = newId();
    await db
      .insertInto('organization')
      .values({ id, name: id, data_key: vault.newDataKey(id) })
      .execute();
    const sealed = await vault.seal(db, id, `test/${id}`, `secret of ${id}`);
    await db
      .updateTable('organization')
      .set({ description: sealed.toString('base64') })
      .where('id', '=', id)
      .execute();
  });

/** Starts a process that reads all secrets until it is told to end. */
function startReader() {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'reader.fixture.ts')]);
  child.stdin.end(JSON.stringify({ config: clone.config, file }));
  const said = { text: '', errors: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.text += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.errors += text));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const failed = ended.then((status) => Promise.reject(new Error(`The reader ended (${status}): ${said.errors}`)));
  failed.catch(() => undefined); // Awaited by whoever waits for rounds.
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const rounds = () => said.text.split('\n').length - 1;
  const reads = (after: number) =>
    Promise.race([expect.poll(rounds, { timeout: 60_000 }).toBeGreaterThan(after), failed]);
  return { said, rounds, reads, end: () => (child.kill('SIGTERM'), ended) };
}

const firstId = () => vault.keyIds()[0]!;

test('a rotation seals everything anew while another process reads and this one adds organizations', async () => {
  const reader = startReader();
  await reader.reads(0);
  const [before] = [firstId()];
  promoteKey(file);
  expect(firstId()).not.toBe(before);
  const adding = (async () => {
    for (let n = 0; n < 30; n++) await addOrganization();
  })();
  expect(await rewrapOlder(open.db, vault)).toBeGreaterThanOrEqual(ORGANIZATIONS + 1);
  await adding;
  const rounds = reader.rounds();
  await reader.reads(rounds + 1);
  expect(await reader.end(), reader.said.errors).toBe(0);
  const { length } = await open.db.selectFrom('organization').select('id').execute();
  expect(reader.said.text.trim().split('\n').at(-1)).toBe(`read ${length} ${firstId()}`);
  expect([...(await countByKey(open.db)).keys()]).toEqual([firstId()]);
}, 180_000);

test('afterwards the older key is not needed, and alone it is refused by the canary', async () => {
  const older = readVaultKeys(file, false)[0]!;
  promoteKey(file);
  await rewrapOlder(open.db, vault);
  const [current] = readVaultKeys(file, false);
  const alone = await openInstallation(open.db, [current!]);
  const { id, description } = await open.db
    .selectFrom('organization')
    .select(['id', 'description'])
    .executeTakeFirstOrThrow();
  expect(await alone.vault.open(open.db, id, `test/${id}`, Buffer.from(description!, 'base64'))).toBe(
    `secret of ${id}`,
  );
  await expect(openInstallation(open.db, [older])).rejects.toThrow('restore the right key file');
  await expect(openInstallation(open.db, [randomBytes(32)])).rejects.toThrow('restore the right key file');
});

test('one that is broken off leaves everything readable and is gone on with', async () => {
  promoteKey(file);
  const stop = new AbortController();
  const broken: Vault = {
    ...vault,
    rewrap: (place, sealed) => {
      if (place.startsWith('organization/') && --left === 0) stop.abort();
      return vault.rewrap(place, sealed);
    },
  };
  let left = 100;
  await expect(rewrapOlder(open.db, broken, stop.signal)).rejects.toThrow('aborted');
  const older = await countOlder(open.db, vault);
  expect(older).toBeGreaterThan(0);
  expect(older).toBeLessThan(ORGANIZATIONS);
  const reader = startReader();
  await reader.reads(0);
  expect(await rewrapOlder(open.db, vault)).toBe(older);
  expect(await countOlder(open.db, vault)).toBe(0);
  expect(await reader.end(), reader.said.errors).toBe(0);
}, 90_000);

test('answers kept for an Idempotency-Key are sealed anew as well', async () => {
  const [principal, key] = [newId(), 'a key'];
  await open.db
    .insertInto('idempotency_record')
    .values({
      principal_id: principal,
      key,
      fingerprint: Buffer.alloc(1),
      status: 200,
      body: vault.sealOwn(answerPlace(principal, key), 'the answer').toString('base64'),
    })
    .execute();
  promoteKey(file);
  await rewrapOlder(open.db, vault);
  const { body } = await open.db.selectFrom('idempotency_record').select('body').executeTakeFirstOrThrow();
  const alone = createVault(readVaultKeys(file, false).slice(0, 1));
  expect(alone.openOwn(answerPlace(principal, key), Buffer.from(body!, 'base64'))).toBe('the answer');
});

test('a staged key decrypts without encrypting, and is the one that the rotation takes', () => {
  const [before] = vault.keyIds();
  const staged = stageKey(file);
  expect(stageKey(file)).toBe(staged);
  expect(statSync(staged).mode & 0o777).toBe(0o600);
  const next = Buffer.from(readFileSync(staged, 'utf8').trim(), 'base64');
  expect(vault.keyIds()[0]).toBe(before);
  const elsewhere = createVault([next]).sealOwn('place', 'from the machine that was first');
  expect(vault.openOwn('place', elsewhere)).toBe('from the machine that was first');
  promoteKey(file);
  expect(readVaultKeys(file, false)[0]).toEqual(next);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('a kill between the two steps of putting a key in front makes no second one', () => {
  const staged = readFileSync(stageKey(file), 'utf8');
  writeFileSync(file, staged + readFileSync(file, 'utf8'), { mode: 0o600 });
  const lines = readFileSync(file, 'utf8');
  promoteKey(file);
  expect(readFileSync(file, 'utf8')).toBe(lines);
  expect(readVaultKeys(file, false)).toHaveLength(lines.trim().split('\n').length);
});

test('a key file that is being changed by hand disturbs nobody, and is refused at a start', () => {
  const content = readFileSync(file, 'utf8');
  writeFileSync(file, 'half a li');
  expect(() => readVaultKeys(file, false)).toThrow('is no key file');
  const sealed = vault.sealOwn('place', 'value');
  expect(vault.openOwn('place', sealed)).toBe('value');
  writeFileSync(file, content);
  expect(vault.openOwn('place', sealed)).toBe('value');
});

test('what the own key of the installation encrypts is known to the rotation', () => {
  const root = path.join(import.meta.dirname, '../..');
  const uses = globSync('**/*.ts', { cwd: root })
    .filter((name) => !/\.(test|fixture)\.ts$/.test(name))
    .flatMap((name) => {
      const found = readFileSync(path.join(root, name), 'utf8').match(/\.(sealOwn|newDataKey)\(/g);
      return found ? [`${name} ${found.join(' ')}`] : [];
    });
  expect(uses.sort()).toEqual([
    'platform/http/idempotency.ts .sealOwn(',
    'platform/vault/key.ts .sealOwn( .sealOwn(',
    'resources/organization/bootstrap.ts .newDataKey(',
  ]);
});
