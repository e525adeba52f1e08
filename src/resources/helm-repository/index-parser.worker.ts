import { parentPort, workerData } from 'node:worker_threads';
import { parse } from 'yaml';

/** A thread that reads one index and answers the versions of each chart, or what is wrong with it. */
function read(text: string): { index: Record<string, string[]> } | { problem: string } {
  try {
    // Helm takes an index in JSON too, which is YAML, but is read much faster by itself.
    const value: unknown = text.trimStart().startsWith('{')
      ? JSON.parse(text)
      : parse(text, { maxAliasCount: 0, schema: 'failsafe', logLevel: 'error' });
    const entries = objectOf(objectOf(value)?.['entries']);
    if (!entries) return { problem: 'it has no entries' };
    return { index: Object.fromEntries(Object.entries(entries).map(([name, list]) => [name, versionsIn(list)])) };
  } catch (error) {
    return { problem: (error as Error).message.split('\n')[0]! };
  }
}

const objectOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;

const versionsIn = (list: unknown): string[] =>
  (Array.isArray(list) ? list : [])
    .map((entry: unknown) => objectOf(entry)?.['version'])
    .filter((version): version is string => typeof version === 'string');

parentPort!.postMessage(read(workerData as string));
