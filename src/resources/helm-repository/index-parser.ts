import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';

/** A version of a chart, as an index has it. */
export interface ChartInIndex {
  version: string;
  /** Where its archive is, perhaps from the index on; null where the index does not say. */
  url: string | null;
  /** SHA-256 of the archive, hexadecimal; null where the index does not say. */
  digest: string | null;
}

/** Versions by the name of their chart, in the index's order. */
export type ChartIndex = Map<string, ChartInIndex[]>;

/** For the longest index that is read: YAML takes about a second and 80 MB per megabyte. */
const PARSE_TIMEOUT_MS = 30_000;
const PARSE_MEMORY_MB = 1200;
const REMEMBERED = 20;

/** What indexes say, by their digest: they are asked for again and again, and seldom change. */
const remembered = new Map<string, ChartIndex>();
/** One at a time: a parser takes a processor of its own. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Reads the index of a Helm repository (`index.yaml`), in a thread of its own: a large one takes many seconds. Throws Error saying what is
 * wrong with it.
 */
export function parseIndex(content: Buffer): Promise<ChartIndex> {
  const digest = createHash('sha256').update(content).digest('hex');
  const known = remembered.get(digest);
  if (known) return Promise.resolve(known);
  const parsed = last.then(() => remembered.get(digest) ?? parseInThread(content.toString()));
  last = parsed.catch(() => undefined);
  return parsed.then((index) => {
    remembered.delete(digest);
    remembered.set(digest, index);
    if (remembered.size > REMEMBERED) remembered.delete(remembered.keys().next().value!);
    return index;
  });
}

async function parseInThread(text: string): Promise<ChartIndex> {
  const worker = new Worker(new URL('./index-parser.worker.ts', import.meta.url), {
    workerData: text,
    // Nothing of this process: it reads what somebody else has written.
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: PARSE_MEMORY_MB },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<ChartIndex>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error('it takes too long to read')), PARSE_TIMEOUT_MS);
      worker.once('message', ({ index, problem }: { index?: ChartIndex; problem?: string }) =>
        index ? resolve(index) : reject(new Error(problem)),
      );
      worker.once('error', reject);
      worker.once('exit', () => reject(new Error('it takes too much memory to read')));
    });
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
