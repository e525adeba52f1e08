import { parentPort, workerData } from 'node:worker_threads';
import { parse } from 'yaml';
import type { ChartIndex, ChartInIndex } from '#resources/helm-repository/index-parser.ts';

/** A thread that reads one index and answers what is there of each chart, or what is wrong with it. */
function read(text: string): { index: ChartIndex } | { problem: string } {
  try {
    // Helm takes an index in JSON too, which is YAML, but is read much faster by itself.
    const value: unknown = text.trimStart().startsWith('{')
      ? JSON.parse(text)
      : parse(text, { maxAliasCount: 0, schema: 'failsafe', logLevel: 'error' });
    const entries = objectOf(objectOf(value)?.['entries']);
    if (!entries) return { problem: 'it has no entries' };
    return { index: new Map(Object.entries(entries).map(([name, list]) => [name, chartsIn(list)])) };
  } catch (error) {
    return { problem: (error as Error).message.split('\n')[0]! };
  }
}

const objectOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;

const chartsIn = (list: unknown): ChartInIndex[] =>
  (Array.isArray(list) ? list : []).flatMap((entry: unknown) => {
    const { version, urls, digest } = objectOf(entry) ?? {};
    if (typeof version !== 'string') return [];
    const url: unknown = Array.isArray(urls) ? urls[0] : undefined;
    return [{ version, url: textOf(url), digest: textOf(digest) }];
  });

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

parentPort!.postMessage(read(workerData as string));
