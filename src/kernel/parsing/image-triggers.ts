import { parse } from 'yaml';

/**
 * Reads the ONBUILD instructions of an image's configuration. Builders take its keys in any case, and of a repeated key perhaps the first
 * value: a configuration that could be read in several ways is refused. JSON.parse keeps no repeated keys, so JSON is read as YAML.
 */
export function parseTriggers(text: string): string[] {
  const image: unknown = parse(text, { uniqueKeys: true, maxAliasCount: 0, schema: 'json', logLevel: 'error' });
  const triggers = fieldOf(fieldOf(image, 'config'), 'onbuild') ?? [];
  if (!Array.isArray(triggers) || triggers.some((trigger) => typeof trigger !== 'string'))
    throw new Error('its OnBuild must be a list of texts');
  return triggers;
}

/** Returns the value of a key in any case. Throws Error for a key in two cases. */
function fieldOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const found = Object.entries(value).filter(([name]) => name.toLowerCase() === key);
  if (found.length > 1) throw new Error(`it has ${found.map(([name]) => name).join(' and ')}`);
  return found[0]?.[1];
}
