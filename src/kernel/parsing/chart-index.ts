import { parse } from 'yaml';
import { Texts } from '#kernel/parsing/parts.ts';

/** Version of a chart in an index. */
export interface ChartInIndex {
  version: string;
  /** URL of the archive, perhaps relative to the index; null where the index does not name it. */
  url: string | null;
  /** SHA-256 of the archive, hexadecimal; null where the index does not say. */
  digest: string | null;
}

/** Limits of an index, higher than the largest public repositories need. */
const MAX_CHARTS = 20_000;
const MAX_VERSIONS = 50_000;

/** Reads the index of a Helm repository (`index.yaml`): versions of charts by name, each list as JSON. */
export function parseChartIndex(text: string): Texts<Map<string, string>> {
  // Helm takes an index in JSON too, which is YAML, but is read much faster by itself.
  const value: unknown = text.trimStart().startsWith('{')
    ? JSON.parse(text)
    : parse(text, { maxAliasCount: 0, schema: 'failsafe', logLevel: 'error' });
  const entries = objectOf(objectOf(value)?.['entries']);
  if (!entries) throw new Error('it has no entries');
  const charts = Object.entries(entries);
  if (charts.length > MAX_CHARTS) throw new Error(`it names ${charts.length} charts: at most ${MAX_CHARTS} are read`);
  const versions = charts.map(([, list]) => versionsIn(list));
  const count = versions.reduce((sum, list) => sum + list.length, 0);
  if (count > MAX_VERSIONS) throw new Error(`it has ${count} versions of charts: at most ${MAX_VERSIONS} are read`);
  return new Texts(new Map(charts.map(([name], at) => [name, JSON.stringify(versions[at])])));
}

function versionsIn(list: unknown): ChartInIndex[] {
  return (Array.isArray(list) ? list : []).flatMap((entry: unknown) => {
    const { version, urls, digest } = objectOf(entry) ?? {};
    if (typeof version !== 'string') return [];
    const url: unknown = Array.isArray(urls) ? urls[0] : undefined;
    return [{ version, url: textOf(url), digest: textOf(digest) }];
  });
}

const objectOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);
