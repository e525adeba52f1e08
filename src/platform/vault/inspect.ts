import { existsSync } from 'node:fs';
import type { Finding } from '#kernel/finding.ts';
import { askDatabase } from '#platform/database/inspect.ts';
import type { Settings } from '#platform/settings/index.ts';
import { createVault } from '#platform/vault/index.ts';
import { readVaultKeys, vaultKeyFile } from '#platform/vault/key.ts';
import { countByKey } from '#platform/vault/rotation.ts';

/** Reports how many values in the database each key encrypts, if the database answers. Starts nothing. */
export async function inspectVault(settings: Settings): Promise<Finding> {
  const counts = await askDatabase(settings, countByKey);
  const judged =
    typeof counts === 'string'
      ? { state: 'ok' as const, found: `not looked at: ${counts}`, advice: [] }
      : judgeKeys(counts, vaultKeyFile(settings));
  return { name: 'key of the vault', ...judged };
}

function judgeKeys(counts: Map<string, number>, file: string): Pick<Finding, 'state' | 'found' | 'advice'> {
  if (!existsSync(file))
    return { state: 'broken', found: `${file} is missing`, advice: ['Put it back from where you keep it.'] };
  const keys = createVault(readVaultKeys(file, false)).keyIds();
  const sum = (ids: string[]) => ids.reduce((all, id) => all + (counts.get(id) ?? 0), 0);
  const older = sum(keys.slice(1));
  const unreadable = sum([...counts.keys()].filter((id) => !keys.includes(id)));
  const found = `${file} encrypts ${sum(keys.slice(0, 1))} values with its first key (${keys[0]}), ${older} with older ones`;
  if (unreadable > 0)
    return {
      state: 'broken',
      found: `${found}; ${unreadable} need a key that is not in it`,
      advice: ['Copy the key file from the machine where the key was rotated, or from where you keep it.'],
    };
  return { state: 'ok', found, advice: older > 0 ? ['`quarterdeck key rotate` seals them anew with the first.'] : [] };
}
