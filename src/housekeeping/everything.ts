import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '#platform/database/index.ts';
import { Collector, type CollectorParts } from '#housekeeping/collector.ts';
import { listOpenTombstones, makeAllDue, type OpenTombstone } from '#housekeeping/tombstones.ts';

/** Milliseconds between two passes while something has to end before something else. */
const PAUSE_MS = 500;
/** Milliseconds after which what is left is given up. */
const GIVEN_UP_MS = 900_000;

/**
 * Deletes all services and environments, and removes what they have on the clusters that this machine reaches: workloads, storage, images,
 * networks. Returns what could not be removed within a quarter of an hour, with the reason. Whoever calls it again goes on there.
 */
export async function removeEverything(
  parts: CollectorParts,
  progress: (left: number) => void,
): Promise<OpenTombstone[]> {
  const { db } = parts.platform;
  await db.transaction().execute(async (inside) => {
    await inside.deleteFrom('service').execute();
    await inside.deleteFrom('environment').execute();
  });
  const collector = new Collector({ ...parts, graceSeconds: 0 });
  const deadline = Date.now() + GIVEN_UP_MS;
  try {
    for (;;) {
      await makeAllDue(db);
      await collector.collect();
      const left = await listOpenTombstones(db);
      if (left.length === 0 || Date.now() > deadline) return left;
      progress(left.length);
      await sleep(PAUSE_MS);
    }
  } finally {
    await collector.stop();
  }
}

/** Deletes what the database knows of connected clusters, and leaves the clusters as they are: another installation works on them. */
export async function forgetConnected(db: Database): Promise<void> {
  await db.transaction().execute(async (inside) => {
    const connected = inside
      .selectFrom('environment')
      .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
      .select('environment.id')
      .where('cluster.runtime', '=', 'kubernetes');
    await inside.deleteFrom('service').where('environment_id', 'in', connected).execute();
    await inside.deleteFrom('environment').where('id', 'in', connected).execute();
    await inside.deleteFrom('tombstone').where('runtime', '=', 'kubernetes').execute();
  });
}
