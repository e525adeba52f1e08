import type { Platform } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { openArgoCd, type ArgoCdApi } from '#resources/argo-cd/api.ts';
import { findAccess } from '#resources/argo-cd/queries.ts';

/** The organization has just one for each cluster, so that the place stays the same when it is configured anew. */
export const tokenPlace = (clusterId: string): string => `argo_cd/${clusterId}/token`;

/** The client for an Argo CD: its address is the user's. */
export const clientFor = ({ settings }: Pick<Platform, 'settings'>) =>
  createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses });

/** The configured Argo CD of a cluster with its token in the clear, for calling it; undefined when there is none. */
export async function findAccessOf({ db, vault }: Pick<Platform, 'db' | 'vault'>, scope: Scope, clusterId: string) {
  const row = await findAccess(db, scope, clusterId);
  if (!row) return undefined;
  const token = await vault.open(db, scope.organizationId, tokenPlace(clusterId), row.token);
  return { id: row.id, url: row.url, token };
}

/** The Argo CD of a cluster, ready to be asked; undefined when none is configured. */
export async function argoCdOf(
  platform: Platform,
  scope: Scope,
  clusterId: string,
  signal?: AbortSignal,
): Promise<ArgoCdApi | undefined> {
  const access = await findAccessOf(platform, scope, clusterId);
  return access && openArgoCd(clientFor(platform), access.url, access.token, signal);
}
