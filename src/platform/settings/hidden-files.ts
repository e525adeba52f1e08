import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import type { Settings } from '#platform/settings/index.ts';

/**
 * Returns the paths that no workload may see. They are the key that encrypts the secrets, its folder, where a rotation puts the next key,
 * and the settings file, which may contain a database password.
 */
export function hiddenFrom({ vaultKeyFile, config }: Pick<Settings, 'vaultKeyFile' | 'config'>): string[] {
  const keys = vaultKeyFile ? [path.resolve(vaultKeyFile), real(vaultKeyFile)] : [];
  const files = config ? [path.resolve(config), real(config)] : [];
  return [...keys, ...keys.map((file) => path.dirname(file)), ...files];
}

/** Resolves the symbolic links of a path. A path that does not exist is only made absolute. */
const real = (file: string): string => (existsSync(file) ? realpathSync(file) : path.resolve(file));
