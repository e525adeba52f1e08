import { createHash } from 'node:crypto';
import { LruMap } from 'toad-cache';
import type { ChartInIndex } from '#kernel/parsing/chart-index.ts';
import { readFileOf } from '#kernel/parsing/index.ts';

export type { ChartInIndex } from '#kernel/parsing/chart-index.ts';

/** Index of a Helm repository. Versions of a chart stay text until they are asked for. */
export class ChartIndex {
  readonly #charts: ReadonlyMap<string, string>;

  constructor(charts: ReadonlyMap<string, string>) {
    this.#charts = charts;
  }

  names(): string[] {
    return [...this.#charts.keys()];
  }

  /** Versions of a chart in the index's order. */
  get(name: string): ChartInIndex[] | undefined {
    const versions = this.#charts.get(name);
    return versions === undefined ? undefined : (JSON.parse(versions) as ChartInIndex[]);
  }
}

const REMEMBERED = 20;

/** Indexes by their digest: they are asked for again and again, and seldom change. */
const remembered = new LruMap<Promise<ChartIndex>>(REMEMBERED);

/** Reads the index of an organization's Helm repository. Throws ParsingError that names the file and what is wrong with it. */
export function readChartIndex(organizationId: string, name: string, content: Buffer): Promise<ChartIndex> {
  const digest = createHash('sha256').update(content).digest('hex');
  const known = remembered.get(digest);
  if (known) return known;
  const read = readFileOf(organizationId, 'chart-index', { name, text: content.toString() }).then(
    (charts) => new ChartIndex(charts),
  );
  remembered.set(digest, read);
  // A refusal may be for want of time: the next request tries again.
  read.catch(() => remembered.delete(digest));
  return read;
}
