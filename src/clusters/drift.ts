import type { FoundWorkload } from '#runtimes/runtime.ts';

/** Difference between a service in the inventory and in the database. */
export type Difference =
  /** Found, but the database has no such service, or has it as not deployed. */
  | 'unknown'
  /** Should run, but nothing of it runs. */
  | 'missing'
  /** Runs, but should be stopped. */
  | 'running'
  /** Applied by a later deployment than the last one that the database has. */
  | 'newer'
  /** Applied by an earlier deployment than the last one that the database has. */
  | 'older'
  /** Runs as released, with objects that another program has changed or removed in the cluster. */
  | 'changed';

/** Service as the database has it. */
export interface KnownService {
  id: string;
  name: string;
  /** Organization, project and environment, for people. */
  place: string;
  runtime: string;
  /** True if this machine would find it: its cluster belongs to this machine or to none. */
  here: boolean;
  wanted: 'absent' | 'stopped' | 'running';
  /** Generation of the last successful apply; null if there was none. */
  generation: number | null;
  /** Should run with zero instances. */
  scaledToNothing: boolean;
  /** True if a deployment is working on it, so that a difference is expected. */
  underWay: boolean;
  /** Sentence about what others have changed in its cluster; null if nothing is known. */
  changes: string | null;
}

/** Workload that was found, and the cluster with a connection of its own that it is on; null on this machine. */
export type Found = FoundWorkload & { runtime: string; clusterId: string | null };

export interface WorldEntry {
  difference: Difference;
  serviceId: string;
  name: string;
  runtime: string;
  /** Organization, project and environment in the database; null for an unknown service. */
  place: string | null;
  found: FoundWorkload | null;
  /** Generation in the database; null if it has none. */
  generation: number | null;
  /** Cluster that it was found on, if that has a connection of its own. */
  clusterId: string | null;
  /** Sentence about what others have changed; null for other differences. */
  changes: string | null;
}

export interface Comparison {
  differences: WorldEntry[];
  /** Services that are as the database has them. */
  alike: number;
  /** Highest epoch that something was found of; 0 where nothing was. */
  epoch: number;
}

/** Epoch of the installation in a generation (docs/contributing/engine.md, *The queue*). */
export const epochOf = (generation: number): number => Math.floor(generation / 2 ** 32);

/** Compares the inventory with the services of the database. Services with a deployment under way are left out. */
export function compareWorld(known: KnownService[], found: Found[]): Comparison {
  const services = new Map(known.map((service) => [service.id, service]));
  const there = new Map(found.map((workload) => [workload.identity.serviceId, workload]));
  const differences: WorldEntry[] = [];
  let alike = 0;
  for (const workload of found) {
    const service = services.get(workload.identity.serviceId);
    if (service?.underWay) continue;
    const difference = differenceOf(service, workload);
    if (difference) differences.push(entryOf(difference, service, workload));
    else alike++;
  }
  for (const service of known)
    if (service.here && !service.underWay && !there.has(service.id) && shouldLive(service))
      differences.push(entryOf('missing', service, null));
  return { differences, alike, epoch: Math.max(0, ...found.map(({ identity }) => epochOf(identity.generation))) };
}

const shouldLive = (service: KnownService): boolean =>
  service.wanted === 'running' && service.generation !== null && !service.scaledToNothing;

function differenceOf(service: KnownService | undefined, { state, identity }: Found): Difference | undefined {
  if (!service || service.generation === null || service.wanted === 'absent') return 'unknown';
  if (identity.generation > service.generation) return 'newer';
  if (state === 'stopped' && shouldLive(service)) return 'missing';
  if (identity.generation < service.generation) return 'older';
  if (state === 'running' && service.wanted === 'stopped') return 'running';
  return service.changes === null ? undefined : 'changed';
}

const entryOf = (difference: Difference, service: KnownService | undefined, found: Found | null): WorldEntry => ({
  difference,
  serviceId: service?.id ?? found!.identity.serviceId,
  name: service?.name ?? found!.displayName,
  runtime: found?.runtime ?? service!.runtime,
  place: service?.place ?? null,
  found: found && { identity: found.identity, displayName: found.displayName, state: found.state },
  generation: service?.generation ?? null,
  clusterId: found?.clusterId ?? null,
  changes: difference === 'changed' ? service!.changes : null,
});
