import type { Context } from '#platform/context.ts';
import type { Configuration } from '#resources/registry/configuration.ts';

/** Tables that keep the secret part of a configuration. */
export type Table = 'container_registry' | 'helm_repository';

const placeOf = (table: Table, id: string): string => `${table}/${id}/secrets`;

/** Encrypts the secret part of a configuration; null if there is none. */
export async function sealSecrets(
  { vault, db }: Context,
  organizationId: string,
  table: Table,
  id: string,
  secrets: Configuration,
): Promise<Buffer | null> {
  if (Object.keys(secrets).length === 0) return null;
  return vault.seal(db, organizationId, placeOf(table, id), JSON.stringify(secrets));
}

export async function openSecrets(
  { vault, db }: Pick<Context, 'vault' | 'db'>,
  organizationId: string,
  table: Table,
  id: string,
  sealed: Buffer | null,
): Promise<Configuration> {
  if (sealed === null) return {};
  return JSON.parse(await vault.open(db, organizationId, placeOf(table, id), sealed)) as Configuration;
}
