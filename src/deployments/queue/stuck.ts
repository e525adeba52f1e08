/** Deployment or work on a cluster that has not ended, as the watchdog sees it. */
export interface QueueItem {
  id: string;
  /** Name for people. */
  label: string;
  clusterId: string;
  clusterName: string;
  /** Machine of the cluster, where it has not been seen for minutes. */
  absentNode: string | null;
  /** Something outside the queue holds it: a run, a lock, a limit. */
  held: boolean;
  /** Ids of the waiting items that come before it. */
  waitsFor: string[];
}

/** Causes of a queue that does not move. */
export interface Stuck {
  /** Cycles of items: each waits for the next, and the last for the first. */
  cycles: QueueItem[][];
  /** Items that nothing holds. A worker claims them within a second. */
  free: QueueItem[];
}

/** Finds the cycles of a queue, one for each cluster, and the heads that nothing holds. */
export function findStuck(items: QueueItem[]): Stuck {
  const byId = new Map(items.map((item) => [item.id, item]));
  const open = ({ waitsFor }: QueueItem) => waitsFor.filter((id) => byId.has(id));
  const free = items.filter((item) => !item.held && open(item).length === 0);
  const cycles: QueueItem[][] = [];
  const behind = withoutEnd(items);
  const seen = new Set<string>();
  for (const item of behind.values()) {
    if (seen.has(item.clusterId)) continue;
    const cycle = cycleFrom(item, behind);
    for (const { clusterId } of [item, ...cycle]) seen.add(clusterId);
    cycles.push(cycle);
  }
  return { cycles, free };
}

/** Items that would still wait when everything that can end had ended: those in a cycle, and those behind one. */
function withoutEnd(items: QueueItem[]): Map<string, QueueItem> {
  const left = new Map(items.map((item) => [item.id, item]));
  const waiting = new Map(items.map(({ id, waitsFor }) => [id, waitsFor.filter((other) => left.has(other)).length]));
  const followers = new Map<string, string[]>();
  for (const { id, waitsFor } of items)
    for (const other of waitsFor) followers.set(other, [...(followers.get(other) ?? []), id]);
  const ready = items.filter(({ id }) => waiting.get(id) === 0).map(({ id }) => id);
  for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
    left.delete(id);
    for (const follower of followers.get(id) ?? []) {
      const count = waiting.get(follower)! - 1;
      waiting.set(follower, count);
      if (count === 0) ready.push(follower);
    }
  }
  return left;
}

/** Follows what an item waits for until an item comes again. */
function cycleFrom(start: QueueItem, among: Map<string, QueueItem>): QueueItem[] {
  const path: QueueItem[] = [];
  let item = start;
  while (!path.includes(item)) {
    path.push(item);
    item = among.get(item.waitsFor.find((id) => among.has(id))!)!;
  }
  return path.slice(path.indexOf(item));
}
