/** Format of state files that Terraform 0.12 and later, and OpenTofu, write. */
const STATE_FORMAT = 4;

/** Returns whether a text is a plain state of Terraform, or one that OpenTofu has encrypted. Throws Error for any other text. */
export const checkTerraformState = (text: string): 'plain' | 'encrypted' =>
  readTerraformState(text) === null ? 'encrypted' : 'plain';

/** Reads a state of Terraform's, from text or from JSON that was read; null for one that OpenTofu has encrypted. Throws Error for what is none. */
export function readTerraformState(source: unknown): object | null {
  const value = typeof source === 'string' ? readJson(source) : source;
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('it is no object');
  if ('encrypted_data' in value) return null;
  const { version, serial } = value as { version?: unknown; serial?: unknown };
  if (version !== STATE_FORMAT || typeof serial !== 'number')
    throw new Error(`it is not in format ${STATE_FORMAT}: Terraform 0.12 or later writes it`);
  return value;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new Error('it is not JSON', { cause: error });
  }
}
