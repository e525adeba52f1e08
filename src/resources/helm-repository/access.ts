import type { Context } from '#platform/context.ts';
import { createHttpClient, type HttpClient } from '#platform/http-client/index.ts';
import type { RegistryAccess } from '#platform/oci/index.ts';
import type { HelmRepositoryRow } from '#resources/helm-repository/queries.ts';
import { loginOf, openSecrets } from '#resources/registry/index.ts';

/** A repository that can be asked. */
export interface OpenRepository {
  organizationId: string;
  http: HttpClient;
  /** True if it has an index; else it is a registry. */
  hasIndex: boolean;
  access: RegistryAccess;
  signal: AbortSignal;
}

/** Opens a repository's credentials. Throws RegistryError for those that take an identity in a cloud. */
export async function openRepository(
  context: Pick<Context, 'db' | 'vault' | 'settings' | 'clock'> & { signal: AbortSignal },
  row: HelmRepositoryRow,
): Promise<OpenRepository> {
  const { signal } = context;
  const http = createHttpClient({ allowedPrivateAddresses: context.settings.allowedPrivateAddresses });
  const secrets = await openSecrets(context, row.organization_id, 'helm_repository', row.id, row.secrets);
  const split = { config: row.config as Record<string, string>, secrets };
  const credentials = await loginOf(split, {
    http,
    now: context.clock.now(),
    ecrUrl: context.settings.ecrUrl,
    signal,
  });
  const { organization_id: organizationId, url, skip_tls_verification: skipTlsVerification } = row;
  const access = { organizationId, url, credentials, skipTlsVerification };
  return { organizationId, http, hasIndex: row.kind === 'HTTPS', access, signal };
}
