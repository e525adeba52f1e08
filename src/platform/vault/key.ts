import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { newId } from '#kernel/ids.ts';
import { writeAtomically } from '#kernel/private-files.ts';
import type { Database } from '#platform/database/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { AUDIT_KEY, createVault, KEY_BYTES, type Vault } from '#platform/vault/index.ts';

/** Returns the file of the installation's keys. */
export const vaultKeyFile = (settings: Pick<Settings, 'vaultKeyFile' | 'dataDir'>): string =>
  settings.vaultKeyFile || path.join(settings.dataDir, 'vault.key');

/**
 * Reads the installation's keys (base64, one key per line, the first encrypts), or makes the first when `mayCreate`. The staged key
 * (`stageKey`) comes last: it decrypts only. Throws when the file is missing or has something else in it.
 */
export function readVaultKeys(file: string, mayCreate: boolean): Buffer[] {
  if (!existsSync(file)) {
    if (!mayCreate)
      throw new Error(
        `The key of the vault is missing: ${file}. Restore it from where you keep it; without it no secret can be read.`,
      );
    mkdirSync(path.dirname(file), { recursive: true });
    writeKeys(file, [randomBytes(KEY_BYTES)]);
  }
  // Before the key file: another process may promote it at this moment.
  const staged = readStaged(file);
  return [...readLines(file), ...staged];
}

function readStaged(file: string): Buffer[] {
  try {
    return readLines(stagedFile(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function readLines(file: string): Buffer[] {
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const keys = lines.map((line) => Buffer.from(line.trim(), 'base64'));
  if (keys.length === 0 || keys.some((key) => key.length !== KEY_BYTES))
    throw new Error(`${file} is no key file of the vault: each line is the base64 of ${KEY_BYTES} bytes.`);
  return keys;
}

/** Losing a used key loses data. */
function writeKeys(file: string, keys: Buffer[]): void {
  writeAtomically(file, keys.map((key) => `${key.toString('base64')}\n`).join(''), { isSynced: true });
}

const stagedFile = (file: string): string => `${file}.next`;

/**
 * Makes the key that the next rotation will take, in a file beside the key file, unless there is one. Every process knows it from then
 * on without encrypting with it, so that it can be brought to other machines before it is used. Answers the file.
 */
export function stageKey(file: string): string {
  const staged = stagedFile(file);
  if (!existsSync(staged)) writeKeys(staged, [randomBytes(KEY_BYTES)]);
  return staged;
}

export const isStaged = (file: string): boolean => existsSync(stagedFile(file));

/** Puts a key in front of the key file: the staged one, else a new one. The older ones stay below it. */
export function promoteKey(file: string): void {
  const staged = stageKey(file);
  const [next] = readLines(staged);
  const keys = readLines(file);
  // A kill between the two steps leaves the staged key in both files.
  if (!keys[0]!.equals(next!)) writeKeys(file, [next!, ...keys.filter((key) => !key.equals(next!))]);
  rmSync(staged);
}

/** Returns the present keys for a vault that asks again. Null while the file is being changed by hand or is away. */
export function rereadVaultKeys(file: string): Buffer[] | null {
  try {
    return readVaultKeys(file, false);
  } catch {
    return null; // The keys of the start are still right; what needs another one says so.
  }
}

/**
 * The installation's row: made at the first start, with a canary that only the right key opens.
 * Throws when the key is not the one that the database was made with.
 */
export async function openInstallation(
  db: Database,
  keys: Buffer[],
  reread?: () => Buffer[] | null,
): Promise<{ vault: Vault; installationId: string; epoch: number }> {
  const vault = createVault(keys, reread);
  const fresh = newId();
  await db
    .insertInto('installation')
    .values({ id: fresh, canary: vault.sealOwn(CANARY, fresh) })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const row = await db.selectFrom('installation').selectAll().executeTakeFirstOrThrow();
  try {
    if (vault.openOwn(CANARY, row.canary!) !== row.id) throw new Error('The canary is another one.');
  } catch (cause) {
    throw new Error(
      'The key of the vault is not the one that this database was made with: restore the right key file.',
      { cause },
    );
  }
  vault.useAuditKey(row.audit_key ?? (await makeAuditKey(db, vault)));
  return { vault, installationId: row.id, epoch: row.epoch };
}

/** Makes the key that signs audit events. Several processes may start at once: the first one's counts. */
async function makeAuditKey(db: Database, vault: Vault): Promise<Buffer> {
  await db
    .updateTable('installation')
    .set({ audit_key: vault.sealOwn(AUDIT_KEY, randomBytes(KEY_BYTES).toString('base64')) })
    .where('audit_key', 'is', null)
    .execute();
  const row = await db.selectFrom('installation').select('audit_key').executeTakeFirstOrThrow();
  return row.audit_key!;
}

/** Place of the value that proves a key. */
export const CANARY = 'installation/canary';
