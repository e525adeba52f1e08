import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { newId } from '#kernel/ids.ts';
import type { Database } from '#platform/database/index.ts';
import { createVault, type Vault } from '#platform/vault/index.ts';

/** Reads the installation's key (base64, one key per line, the first encrypts), or makes it when `mayCreate`. */
export function readVaultKeys(file: string, mayCreate: boolean): Buffer[] {
  if (!existsSync(file)) {
    if (!mayCreate)
      throw new Error(
        `The key of the vault is missing: ${file}. Restore it from where you keep it; without it no secret can be read.`,
      );
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(`${file}.new`, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.map((line) => Buffer.from(line.trim(), 'base64'));
}

/**
 * The installation's row: made at the first start, with a canary that only the right key opens.
 * Throws when the key is not the one that the database was made with.
 */
export async function openInstallation(
  db: Database,
  keys: Buffer[],
): Promise<{ vault: Vault; installationId: string; epoch: number }> {
  const vault = createVault(keys);
  const fresh = newId();
  await db
    .insertInto('installation')
    .values({ id: fresh, canary: vault.sealOwn('installation/canary', fresh) })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const row = await db.selectFrom('installation').selectAll().executeTakeFirstOrThrow();
  try {
    if (vault.openOwn('installation/canary', row.canary!) !== row.id) throw new Error('The canary is another one.');
  } catch (cause) {
    throw new Error(
      'The key of the vault is not the one that this database was made with: restore the right key file.',
      { cause },
    );
  }
  return { vault, installationId: row.id, epoch: row.epoch };
}
