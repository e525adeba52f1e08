import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { writeAtomically } from '#kernel/private-files.ts';
import type { ProxyRequests } from '#runtimes/proxy/builtin/protocol.ts';
import { readStored } from '#runtimes/proxy/requests.ts';
import { emptyTally, type Tally } from '#runtimes/tools/tally.ts';

/** Folder of what ended processes of the proxy have counted, below that of the proxy. */
export const COUNTS_FOLDER = 'requests';

const fileOf = (directory: string, run: string): string => join(directory, COUNTS_FOLDER, `ended-${run}.json`);

/** Leaves behind what this process has counted: it ends. */
export function leaveRequests(directory: string, requests: ProxyRequests): void {
  mkdirSync(join(directory, COUNTS_FOLDER), { recursive: true, mode: 0o700 });
  writeAtomically(fileOf(directory, requests.run), JSON.stringify(requests));
}

/** Reads what ended processes have left, and removes what the last snapshot has whole. */
export function readLeftRequests(directory: string, last: Snapshot | null): ProxyRequests[] {
  const folder = join(directory, COUNTS_FOLDER);
  const paths = readdirSync(folder).filter((name) => /^ended-.*\.json$/.test(name)).map((name) => join(folder, name)); // prettier-ignore
  return paths.flatMap((path) => {
    const left = readStored<ProxyRequests>(path);
    if (left && !isDeepStrictEqual(last?.[left.run], Object.fromEntries(left.services))) return [left];
    rmSync(path, { force: true });
    return [];
  });
}

/** Counts of each process of the proxy at a time, by its name and by service. */
export type Snapshot = Record<string, Record<string, Tally>>;

/** Processes that a snapshot knows. One that gave no answer once would be counted from its start without its place in it. */
const MOST_RUNS = 4;

/** Adds up what the processes of the proxy have counted since the last snapshot. A process that ended since then is missing. */
export function addRequests(
  last: Snapshot | null,
  processes: ProxyRequests[],
): { position: Snapshot; tallies: Map<string, Tally> } {
  const tallies = new Map<string, Tally>();
  for (const { run, services } of processes)
    for (const [serviceId, tally] of services) {
      const stored = last?.[run]?.[serviceId];
      const [now, then] = [sum(tally.statuses), sum(stored?.statuses ?? [])];
      // The routes of a service that was removed meanwhile begin with zero.
      const before = now < then ? undefined : stored;
      const total = tallies.get(serviceId) ?? emptyTally();
      addDifference(total.statuses, tally.statuses, before?.statuses);
      addDifference(total.latencies, tally.latencies, before?.latencies);
      tallies.set(serviceId, total);
    }
  const answered = processes.map(({ run, services }) => [run, Object.fromEntries(services)] as const);
  const silent = Object.entries(last ?? {}).filter(([run]) => !processes.some((one) => one.run === run));
  return { position: Object.fromEntries([...silent, ...answered].slice(-MOST_RUNS)), tallies };
}

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0);

function addDifference(total: number[], now: number[], before: number[] = []): void {
  for (const [at, number] of now.entries()) total[at]! += number - (before[at] ?? 0);
}
