import { readFileOf } from '#kernel/parsing/index.ts';
import { readParts } from '#kernel/parsing/parts.ts';

/**
 * Compares two manifests of a release of an organization by their objects, in a thread. Contents of Secrets are not told. Throws ParsingError
 * for a manifest that cannot be read.
 */
export async function differences(organizationId: string, before: string, after: string): Promise<string[]> {
  const file = { name: 'The manifest of the chart', text: after };
  return readParts<string>(await readFileOf(organizationId, 'manifest', file, { before }));
}
