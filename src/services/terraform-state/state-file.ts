import type { StateReading } from '#kernel/parsing/formats.ts';
import { readFileOf } from '#kernel/parsing/index.ts';

/** Name that messages call a state by. */
const NAME = 'The state';

/**
 * Throws ParsingError (400) unless the content is a Terraform state in a known format. Encrypted states of OpenTofu are accepted unread.
 */
export async function checkState(organizationId: string, content: Buffer): Promise<void> {
  await readFileOf(organizationId, 'terraform-state', { name: NAME, text: content });
}

/**
 * Reads resources and outputs of a state; null if it is encrypted. Resources show no sensitive value, be it marked in the state or one of
 * `secrets`; outputs are complete. Throws ParsingError for anything but a state.
 */
export const readStateFile = (
  organizationId: string,
  content: Buffer,
  secrets: readonly string[],
): Promise<StateReading | null> =>
  readFileOf(organizationId, 'terraform-content', { name: NAME, text: content }, { secrets });
