import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { locateImage, parseRegistry, registryHost, type RegistryAccess } from '#platform/oci/index.ts';
import type { SplitConfiguration } from '#resources/registry/configuration.ts';
import { createEcrRepository } from '#resources/registry/ecr.ts';
import { ecrApiOf, loginOf, type LoginParts } from '#resources/registry/login.ts';
import { findRegistryById, holdRegistry, listRegistries, type RegistryRow } from '#resources/registry/queries.ts';
import { openSecrets } from '#resources/registry/secrets.ts';

/** Parts of a context that reading credentials needs: the engine has no actor. */
type Parts = Pick<Context, 'db' | 'vault' | 'settings' | 'clock'>;

/** Returns a registry that a body names; 400 naming the field if the organization has none of that id (docs/contributing/rules.md 7). */
export async function findRegistry(
  { db }: Pick<Context, 'db'>,
  organizationId: string,
  id: string,
  field = 'registry_id',
): Promise<Pick<RegistryRow, 'id' | 'name' | 'kind' | 'url'>> {
  const row = await holdRegistry(db, { organizationId }, id);
  if (!row) throw invalidField(field, 'names no container registry of this organization');
  const { name, kind, url } = row;
  return { id, name, kind, url };
}

/**
 * Returns how to log in to a registry of an organization now; undefined if it has none of that id. Some passwords come from another system
 * and live for hours: store none of it. Never inside a transaction. Throws RegistryError.
 */
export async function registryAccess(
  parts: Parts,
  organizationId: string,
  id: string,
  signal?: AbortSignal,
): Promise<(RegistryAccess & { host: string }) | undefined> {
  const row = await findRegistryById(parts.db, [organizationId], id);
  return row && accessTo(parts, row, signal);
}

/** Returns how to log in to a registry whose row is at hand, as `registryAccess` does. */
export async function accessTo(
  parts: Parts,
  row: RegistryRow,
  signal?: AbortSignal,
): Promise<RegistryAccess & { host: string }> {
  const credentials = await loginOf(await openConfiguration(parts, row), loginParts(parts, signal));
  return { organizationId: row.organization_id, url: row.url, host: registryHost(row.url), credentials };
}

const loginParts = ({ settings, clock }: Parts, signal?: AbortSignal): LoginParts => ({
  http: createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses }),
  now: clock.now(),
  ecrUrl: settings.ecrUrl,
  ...(signal ? { signal } : {}),
});

const openConfiguration = async (parts: Parts, row: RegistryRow): Promise<SplitConfiguration> => ({
  config: row.config as Record<string, string>,
  secrets: await openSecrets(parts, row.organization_id, 'container_registry', row.id, row.secrets),
});

/**
 * Creates a repository in a registry of an organization that takes no image before that: Amazon's. Others make their repositories by
 * themselves. Never inside a transaction. Throws RegistryError.
 */
export async function createRepository(
  parts: Parts,
  { organizationId, registryId }: { organizationId: string; registryId: string },
  { name, tags }: { name: string; tags: Record<string, string> },
  signal?: AbortSignal,
): Promise<void> {
  const row = await findRegistryById(parts.db, [organizationId], registryId);
  const ecr = row && ecrApiOf(await openConfiguration(parts, row), loginParts(parts, signal));
  if (ecr) await createEcrRepository(ecr, name, tags);
}

/**
 * Returns how to log in to the organization's registry that holds an image; undefined if it has none. The image is given by its name with
 * its registry's host; the longest prefix of names wins. Never inside a transaction. Throws RegistryError.
 */
export async function findRegistryOf(
  parts: Parts,
  organizationId: string,
  imageName: string,
  signal?: AbortSignal,
): Promise<(RegistryAccess & { host: string }) | undefined> {
  const image = locateImage(imageName, 'latest', null);
  const rows = await listRegistries(parts.db, { organizationId }).execute();
  const [nearest] = rows
    .map((row) => ({ row, at: parseRegistry(row.url) }))
    .filter(({ at }) => hostOf(at.base) === hostOf(image.base))
    .filter(({ at }) => at.prefix === '' || image.name.startsWith(`${at.prefix}/`))
    .toSorted((one, other) => other.at.prefix.length - one.at.prefix.length);
  return nearest && accessTo(parts, nearest.row, signal);
}

const hostOf = (url: string): string => new URL(url).host;
