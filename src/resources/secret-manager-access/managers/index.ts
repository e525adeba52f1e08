import type { OpenAccess } from '#resources/cluster/index.ts';
import { openAwsParameterStore, openAwsSecretsManager } from '#resources/secret-manager-access/managers/aws.ts';
import { openGcpSecretManager } from '#resources/secret-manager-access/managers/gcp.ts';
import {
  SecretManagerError,
  type ManagerParts,
  type SecretManager,
} from '#resources/secret-manager-access/managers/manager.ts';
import { openScalewaySecretManager } from '#resources/secret-manager-access/managers/scaleway.ts';
import { openVault } from '#resources/secret-manager-access/managers/vault.ts';

export { SecretManagerError, type SecretManager } from '#resources/secret-manager-access/managers/manager.ts';

const MANAGERS: Record<OpenAccess['endpoint']['mode'], (access: OpenAccess, parts: ManagerParts) => SecretManager> = {
  AWS_SECRET_MANAGER: openAwsSecretsManager,
  AWS_PARAMETER_STORE: openAwsParameterStore,
  GCP_SECRET_MANAGER: openGcpSecretManager,
  SCALEWAY_SECRET_MANAGER: openScalewaySecretManager,
  VAULT: openVault,
};

/** Parts a name from the key that follows a `#`, which no manager lets stand in a name. */
const NAME_AND_KEY = /^([^#]*)#(.+)$/;

/**
 * The secret manager of an access. Nothing is asked before its first use. A name `secret#key` reads one value of a secret that is a JSON
 * object, wherever it lies.
 */
export function openSecretManager(access: OpenAccess, parts: ManagerParts): SecretManager {
  const manager = MANAGERS[access.endpoint.mode](access, parts);
  return {
    label: manager.label,
    list: (prefix) => manager.list(prefix),
    read: async (name) => {
      const [, secret, key] = NAME_AND_KEY.exec(name) ?? [];
      const value = secret === undefined ? await manager.read(name) : valueIn(await manager.read(secret), key!);
      if (value.includes('\0')) throw new SecretManagerError('its value is no text: there is a NUL in it');
      return value;
    },
  };
}

function valueIn(text: string, key: string): string {
  const value = fieldOf(text, key);
  if (value === undefined) throw new SecretManagerError(`its value is no JSON object with the key ${key}`);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function fieldOf(text: string, key: string): unknown {
  try {
    const object = JSON.parse(text) as Record<string, unknown> | null;
    return typeof object === 'object' && object !== null && Object.hasOwn(object, key) ? object[key] : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
