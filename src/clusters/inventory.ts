import { existsSync } from 'node:fs';
import path from 'node:path';
import { compareWorld, type Comparison, type Found, type KnownService } from '#clusters/drift.ts';
import type { Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import {
  RuntimeError,
  type ClusterRuntimes,
  type Handle,
  type MachineRuntimes,
  type Runtime,
} from '#runtimes/runtime.ts';

/** Machine whose runtimes are asked, beside those of clusters of no machine. */
export interface InventoryParts {
  platform: Platform;
  runtimes: MachineRuntimes & ClusterRuntimes;
  nodeId: string;
}

export interface World extends Comparison {
  /** Sentences that name each cluster or runtime that was not inspected from this machine, with the reason. */
  unseen: string[];
}

const LOCAL = ['host', 'docker', 'fake'];

/** Compares the workloads on this machine, and on clusters without a machine, with the database. Changes nothing. */
export async function takeInventory(parts: InventoryParts): Promise<World> {
  const { found, unseen, unseenClusters } = await findAll(parts);
  return { ...compareWorld(await listKnown(parts, unseenClusters), found), unseen };
}

/**
 * Finds the workloads that the database does not know. `only` restricts the result to these services. Throws if one of them is not unknown.
 */
export async function findUnknown(parts: InventoryParts, only?: string[]): Promise<Comparison['differences']> {
  const { differences } = await takeInventory(parts);
  const all = differences.filter(({ difference }) => difference === 'unknown');
  const stranger = only?.find((id) => !all.some(({ serviceId }) => serviceId === id));
  if (stranger) throw new Error(`${stranger} is not an unknown service of this machine: nothing was removed.`);
  return all.filter(({ serviceId }) => only?.includes(serviceId) ?? true);
}

/** Removes the workloads that `findUnknown` returned, with their storage. */
export async function removeFound(
  { platform, runtimes }: InventoryParts,
  unknown: Comparison['differences'],
): Promise<void> {
  for (const { found, runtime, clusterId: id } of unknown)
    await (
      await (id === null ? runtimes.onMachine(runtime) : runtimes.runtimeOf({ id, runtime }))
    ).remove(found!.identity, null, {
      signal: new AbortController().signal,
      log: (line) => platform.log.info(line),
    });
}

interface Inventory {
  found: Found[];
  unseen: string[];
  /** Clusters with a connection of their own that could not be asked: nothing is missing there. */
  unseenClusters: Set<string>;
}

async function findAll({ platform, runtimes, nodeId }: InventoryParts): Promise<Inventory> {
  const clusters = await platform.db
    .selectFrom('cluster')
    .leftJoin('node', 'node.id', 'cluster.node_id')
    .select(['cluster.id', 'cluster.runtime', 'cluster.name', 'cluster.node_id', 'node.name as machine'])
    .execute();
  const away = clusters.filter(({ node_id }) => node_id !== null && node_id !== nodeId);
  const unseen = away.map(
    ({ name, machine }) => `The cluster ${name} belongs to the machine ${machine}: run this there.`,
  );
  const present = clusters.filter((cluster) => !away.includes(cluster));
  const isConnected = ({ runtime }: { runtime: string }) => !LOCAL.includes(runtime);
  const used = new Set(present.filter((cluster) => !isConnected(cluster)).map(({ runtime }) => runtime));
  unseen.push(...(await listRemains(platform.db)));
  const found: Found[] = [];
  const unseenClusters = new Set<string>();
  for (const { id, runtime, name } of present.filter(isConnected)) {
    const listed = await listOf(() => runtimes.runtimeOf({ id, runtime }), `The cluster ${name}`);
    if (typeof listed !== 'string') found.push(...listed.map((one) => ({ ...one, runtime, clusterId: id })));
    else {
      unseen.push(listed);
      unseenClusters.add(id);
    }
  }
  // Also those that no cluster of the database uses: one may have been made since the backup.
  for (const name of new Set([...used, ...LOCAL])) {
    if (!used.has(name) && name === 'fake' && !existsSync(path.join(platform.settings.dataDir, 'fake'))) continue;
    const listed = await listOf(() => runtimes.onMachine(name), `The runtime ${name}`);
    if (typeof listed !== 'string') found.push(...listed.map((one) => ({ ...one, runtime: name, clusterId: null })));
    else if (used.has(name)) unseen.push(listed);
  }
  return { found, unseen, unseenClusters };
}

/** Returns a sentence for each deleted cluster on which something is left. */
async function listRemains(db: Database): Promise<string[]> {
  const rows = await db
    .selectFrom('cluster_remains as r')
    .innerJoin('tombstone as t', 't.cluster_id', 'r.cluster_id')
    .select(['r.name', sql<number>`count(distinct t.environment_id)::int`.as('environments')])
    .select(sql<string | null>`max(t.last_error)`.as('error'))
    .groupBy(['r.cluster_id', 'r.name'])
    .orderBy('r.name')
    .execute();
  return rows.map(
    ({ name, environments, error }) =>
      `The deleted cluster ${name} still has something of ${environments} ${environments === 1 ? 'environment' : 'environments'}: its removal is tried for 90 days${error === null ? '' : `, and failed last with: ${error}`}.`,
  );
}

/** Lists the workloads of a runtime. Returns a sentence with the reason if it cannot list them. */
async function listOf(open: () => Promise<Runtime>, name: string) {
  try {
    const runtime = await open();
    return (await runtime.list?.()) ?? `${name} cannot list what it runs.`;
  } catch (error) {
    if (error instanceof RuntimeError) return `${name} cannot be asked: ${error.message}`;
    throw error;
  }
}

async function listKnown({ platform, nodeId }: InventoryParts, unseen: Set<string>): Promise<KnownService[]> {
  const rows = await serviceRows(platform.db);
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    place: `${row.organization} / ${row.project} / ${row.environment}`,
    runtime: row.runtime,
    here: (row.node_id === null || row.node_id === nodeId) && !unseen.has(row.cluster_id),
    wanted: row.wanted as KnownService['wanted'],
    generation: (row.handle as Handle | null)?.identity.generation ?? null,
    scaledToNothing: row.scaled_to_nothing,
    underWay: row.under_way,
    changes: row.changes,
  }));
}

const serviceRows = (db: Database) =>
  db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .innerJoin('organization', 'organization.id', 'service.organization_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select([
      'service.id',
      'service.name',
      'service.wanted',
      'service.handle',
      'environment.name as environment',
      'project.name as project',
      'organization.name as organization',
      'cluster.runtime',
      'cluster.node_id',
      'cluster.id as cluster_id',
      sql<boolean>`coalesce((service.spec ->> 'min_running_instances')::int, 1) = 0`.as('scaled_to_nothing'),
      sql<boolean>`exists (select 1 from deployment_service ds join deployment d on d.id = ds.deployment_id
        where ds.service_id = service.id and d.status in ('RUNNING', 'RECAP'))`.as('under_way'),
      sql<string | null>`(select w.message from service_warning w
        where w.service_id = service.id and w.code = 'CHANGED_IN_CLUSTER' limit 1)`.as('changes'),
    ])
    .orderBy('service.id')
    .execute();
