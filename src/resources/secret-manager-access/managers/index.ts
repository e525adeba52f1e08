import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
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
      const whole = await manager.read(secret ?? name);
      const value = secret === undefined ? whole : await valueIn(parts, whole, key!);
      if (value.includes('\0')) throw new SecretManagerError('its value is no text: there is a NUL in it');
      return value;
    },
  };
}

async function valueIn({ organizationId }: ManagerParts, text: string, key: string): Promise<string> {
  const options = { shape: { [key]: 'json' } } as const;
  const read = readFileOf(organizationId, 'json-shape', { name: 'The value', text }, options);
  const object = (await read.catch(asNoObject)) as Record<string, string> | null;
  const value = object?.[key];
  if (value === undefined) throw new SecretManagerError(`its value is no JSON object with the key ${key}`);
  return value.startsWith('"') ? (JSON.parse(value) as string) : value;
}

function asNoObject(error: unknown): null {
  if (!(error instanceof ParsingError)) throw error;
  if (error.kind === 'fault') return null;
  throw new SecretManagerError(`its value cannot be read: ${error.problem}`, error);
}
