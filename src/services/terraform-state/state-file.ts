import type { StateReading } from '#kernel/parsing/formats.ts';
import { readFileOf } from '#kernel/parsing/index.ts';

/** Name that messages call a state by. */
const NAME = 'The state';

/**
 * Throws ParsingError (400) unless it is a state of Terraform's in a format that is known. Encrypted ones of OpenTofu are kept as they
 * are.
 */
export async function checkState(organizationId: string, content: Buffer): Promise<void> {
  await readFileOf(organizationId, 'terraform-state', { name: NAME, text: content });
}

/**
 * Reads what a state lists; null where it is encrypted. No resource shows a sensitive value, be it marked in the state or one of `secrets`;
 * outputs are whole. Throws ParsingError for what is no state.
 */
export const readStateFile = (
  organizationId: string,
  content: Buffer,
  secrets: readonly string[],
): Promise<StateReading | null> =>
  readFileOf(organizationId, 'terraform-content', { name: NAME, text: content }, { secrets });
