import { badGateway, notFound } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { openManagerOf } from '#resources/secret-manager-access/external.ts';
import { SecretManagerError } from '#resources/secret-manager-access/managers/index.ts';
import type { ExternalSecretRow } from '#resources/secret-manager-access/queries.ts';
import type { SecretManagerAccessTarget } from '#resources/secret-manager-access/target.ts';

/**
 * Lists names of a manager's secrets, at most 2,000 (docs/contributing/rules.md, *Endpoints*, endpoint 13); 502 if the manager does not
 * give them.
 */
export async function listUpstreamSecrets(
  context: Context & { signal: AbortSignal },
  access: SecretManagerAccessTarget,
  prefix = '',
): Promise<{ results: string[] }> {
  const manager = await openManagerOf(context, access, access.id, context.signal);
  if (!manager) throw notFound('Secret manager access');
  try {
    return { results: await manager.list(prefix) };
  } catch (error) {
    if (!(error instanceof SecretManagerError)) throw error;
    throw badGateway(`${manager.name} (${manager.label}) does not list its secrets: ${error.message}.`, error);
  }
}

/** A variable that reads from an access, as it is answered. */
export const toExternalSecretView = (row: ExternalSecretRow) => ({
  project_id: row.project_id,
  project_name: row.project_name,
  environment_id: row.environment_id,
  environment_name: row.environment_name,
  ...(row.service_id === null ? {} : { service_id: row.service_id, service_name: row.service_name }),
  service_type: row.scope,
  variable_name: row.key,
  external_secret_name: row.value,
});
