import pg from 'pg';
import type { Platform } from '#platform/context.ts';
import { lockSession } from '#platform/database/locks.ts';
import { readInstallation } from '#platform/installation/index.ts';
import { listOtherMachines } from '#platform/installation/nodes.ts';
import { isStaged, promoteKey, stageKey, vaultKeyFile } from '#platform/vault/key.ts';
import { countByKey, countOlder, rewrapOlder } from '#platform/vault/rotation.ts';

/** Parts of the program that a rotation needs. */
interface Base {
  platform: Platform;
  /** Direct connection, not through a pooler: the lock of the rotation is its session's. */
  directConfig: pg.ClientConfig;
  nodeId: string;
}

export interface Rotation {
  file: string;
  /** Id of the key that encrypts now. */
  keyId: string;
  /** True if an earlier rotation was continued, so that no new key was made. */
  resumed: boolean;
  /** Values that were sealed anew. */
  rewrapped: number;
  /** Names of the other machines, which need the new key file. */
  others: string[];
}

/**
 * Puts a new key in front of the key file and seals anew what an older one encrypts; one that was broken off is gone on with. Other
 * machines must know the key before anything needs it, so where there are some it takes one that was staged. Throws what to do instead.
 */
export async function rotateKey(base: Base): Promise<Rotation> {
  const file = vaultKeyFile(base.platform.settings);
  const { db, vault } = base.platform;
  const lock = new pg.Client({ ...base.directConfig, application_name: 'quarterdeck key rotation' });
  await lock.connect();
  try {
    await lockSession(lock, 'keyRotation');
    if ((await readInstallation(db)).readOnlySince)
      throw new Error('The installation is read-only after a restore: rotate the key when that is accepted.');
    const others = await listOtherMachines(db, base.nodeId);
    const resumed = (await countOlder(db, vault)) > 0;
    if (!resumed) {
      if (others.length > 0 && !isStaged(file)) throw new Error(stageFirst(file, others));
      promoteKey(file);
    }
    const rewrapped = await rewrapOlder(db, vault);
    return { file, keyId: vault.keyIds()[0]!, resumed, rewrapped, others };
  } finally {
    await lock.end();
  }
}

const stageFirst = (file: string, others: string[]): string =>
  `Other machines work with this database (${others.join(', ')}), and they must know the next key before it is used: ` +
  `make it with \`quarterdeck key rotate --stage\`, copy ${file}.next beside their key files, then rotate.`;

/** Makes the key that the next rotation takes, without using it yet. Returns its file. */
export const stageNextKey = (base: Base): string => stageKey(vaultKeyFile(base.platform.settings));

/** Returns the number of values that each key encrypts, and whether the key file has the key. */
export async function describeKeys(base: Base): Promise<{ keyId: string; values: number; here: boolean }[]> {
  const counts = await countByKey(base.platform.db);
  const ids = base.platform.vault.keyIds();
  return [...new Set([...ids, ...counts.keys()])].map((keyId) => ({
    keyId,
    values: counts.get(keyId) ?? 0,
    here: ids.includes(keyId),
  }));
}
