import type { Platform } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { openArgoCd, type ArgoCdApi } from '#resources/argo-cd/api.ts';
import { findAccess, type Which } from '#resources/argo-cd/queries.ts';

/** Returns the vault's place of a token. A cluster has one Argo CD at most, so that the place stays the same when it is configured anew. */
export const tokenPlace = (clusterId: string): string => `argo_cd/${clusterId}/token`;

/** Returns the HTTP client for an Argo CD: its address is the user's. */
export const clientFor = ({ settings }: Pick<Platform, 'settings'>) =>
  createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses });

/** Returns a configured Argo CD with its token in the clear, for calling it; undefined if there is none. */
export async function findAccessOf({ db, vault }: Pick<Platform, 'db' | 'vault'>, scope: Scope, which: Which) {
  const row = await findAccess(db, scope, which);
  if (!row) return undefined;
  const token = await vault.open(db, scope.organizationId, tokenPlace(row.cluster_id), row.token);
  return { id: row.id, organizationId: scope.organizationId, url: row.url, token };
}

/** Opens the API of a configured Argo CD; undefined if none is configured. */
export async function findArgoCd(
  platform: Platform,
  scope: Scope,
  which: Which,
  signal?: AbortSignal,
): Promise<ArgoCdApi | undefined> {
  const access = await findAccessOf(platform, scope, which);
  return access && openArgoCd(clientFor(platform), access, signal);
}
