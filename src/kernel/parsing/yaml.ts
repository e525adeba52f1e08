import { parse, stringify } from 'yaml';
import type { YamlOptions } from '#kernel/parsing/formats.ts';

/** Reads one document of YAML. */
export function parseYaml(
  text: string,
  { maxAliasCount, plain = false, merge = false, version }: YamlOptions,
): unknown {
  try {
    return parse(text, {
      maxAliasCount,
      merge,
      ...(version ? { version } : {}),
      ...(plain ? { schema: 'failsafe' } : {}),
      logLevel: 'error',
    });
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new Error(`it is not YAML: ${(error as Error).message}`, { cause: error });
  }
}

/** Writes the content of a text of JSON as YAML. */
export const yamlOf = (json: string): string => stringify(JSON.parse(json));
