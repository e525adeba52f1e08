import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { checkUrl } from '#platform/http-client/index.ts';
import { parseRegistry } from '#platform/oci/index.ts';
import {
  readConfiguration,
  refuseMoved,
  type Configuration,
  type CredentialShape,
} from '#resources/registry/configuration.ts';
import { openSecrets, sealSecrets, type Table } from '#resources/registry/secrets.ts';

/** Kind of registry or Helm repository: its credentials and its location. */
export interface KindShape extends CredentialShape {
  /** Default URL, or null if each registry of the kind has its own. */
  url(region: string | number | undefined): string | null;
  /** Example of its URL, for messages that ask for one. */
  example: string;
}

/** Location, configuration and secrets, as a row has them. */
interface Kept {
  kind: string;
  url: string;
  config: unknown;
  secrets: Buffer | null;
}

interface Input {
  kind: string;
  url?: string;
  config: Record<string, unknown>;
}

/**
 * Returns the columns for a body that makes a registry or Helm repository, or edits the `present` one. Fields that an edit leaves out stay,
 * and secrets stay as long as the server does. 400 names the field that is wrong.
 */
export async function keep(
  context: Context,
  at: { table: Table; organizationId: string; id: string },
  shape: KindShape,
  input: Input,
  present: Kept | null,
): Promise<Kept & { config: Configuration }> {
  const { table, organizationId, id } = at;
  const same = present?.kind === input.kind ? present : null;
  const before = same && {
    config: same.config as Configuration,
    secrets: await openSecrets(context, organizationId, table, id, same.secrets),
  };
  const { config, secrets } = readConfiguration(input.kind, shape, input.config, before);
  const own = shape.url(config['region']);
  // A default address follows the region.
  const stays = same && same.url !== shape.url(before!.config['region']) ? same.url : null;
  const url = input.url ?? stays ?? own;
  if (url === null) throw invalidField('url', `is required for ${input.kind}: ${shape.example}`);
  checkUrl(url.replace(/^oci:/, 'https:'), 'url', context.settings.allowedPrivateAddresses);
  if (present) refuseMoved(input.config, secrets, parseRegistry(url).base !== parseRegistry(present.url).base);
  return { kind: input.kind, url, config, secrets: await sealSecrets(context, organizationId, table, id, secrets) };
}
