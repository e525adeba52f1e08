import { join } from 'node:path';
import { LATENCY_BOUNDS_MS } from '#kernel/latency-classes.ts';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import { withStartLock } from '#kernel/start-lock.ts';
import type { RequestCounts } from '#runtimes/router.ts';
import type { Tally } from '#runtimes/tools/tally.ts';

/** Status that stands for a visitor who left before the answer. */
export const VISITOR_LEFT = 499;

/** Counts a request by the status of its answer and its time in milliseconds. */
export function countRequest({ statuses, latencies }: Tally, status: number, ms: number): void {
  const hundreds = Math.floor(status / 100);
  if (hundreds < 1 || hundreds > statuses.length) return;
  statuses[hundreds - 1]!++;
  const at = LATENCY_BOUNDS_MS.findIndex((bound) => ms <= bound);
  latencies[at === -1 ? LATENCY_BOUNDS_MS.length : at]!++;
}

/** Milliseconds after which a position is too old to count on from it: one minute would get the requests of hours. */
const STALE_MS = 180_000;

interface Stored<Position> {
  /** Milliseconds since 1970. */
  at: number;
  position: Position;
}

/**
 * Counts on from the position that the processes of this machine share in a folder. The position is stored before the numbers are answered:
 * a process that is killed in between loses them, and none is counted twice.
 */
export function countOn<Position>(
  folder: string,
  read: (last: Position | null) => Promise<{ position: Position; tallies: Map<string, Tally> }>,
): Promise<RequestCounts | null> {
  const file = join(folder, 'position.json');
  return withStartLock(folder, async () => {
    const stored = readStored<Stored<Position>>(file);
    const now = Date.now();
    const isKnown = stored !== null && stored.at <= now && stored.at > now - STALE_MS;
    const { position, tallies } = await read(isKnown ? stored.position : null);
    writeAtomically(file, JSON.stringify({ at: now, position } satisfies Stored<Position>));
    if (!isKnown) return null;
    const services = [...tallies].map(([serviceId, tally]) => ({ serviceId, ...tally }));
    return { seconds: (now - stored.at) / 1000, services };
  });
}

/** Reads a file of this folder; null if there is none, or a power cut left it empty. */
export function readStored<T>(file: string): T | null {
  try {
    return readJson<T>(file);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
