import { sql, type Database } from '#platform/database/index.ts';
import { isLost } from '#platform/installation/nodes.ts';
import { readDatabase } from '#platform/database/inspect.ts';
import type { Settings } from '#platform/settings/index.ts';
import type { Capabilities } from '#runtimes/runtime.ts';

/** Cluster as an operator sees it: where it is, when it answered last, and what it can do. */
export interface ClusterOverview {
  id: string;
  name: string;
  organization: string;
  runtime: string;
  /** Name of its machine; null if it belongs to none. */
  machine: string | null;
  isMachineLost: boolean;
  isMachineDrained: boolean;
  reachedAt: Date | null;
  /** Null until its runtime has answered for the first time. */
  capabilities: Capabilities | null;
}

/** Lists the clusters of all organizations, beside the running service. Throws if the database cannot be read. */
export const inspectClusters = (settings: Settings): Promise<ClusterOverview[]> => readDatabase(settings, listClusters);

async function listClusters(db: Database): Promise<ClusterOverview[]> {
  const rows = await db
    .selectFrom('cluster')
    .innerJoin('organization', 'organization.id', 'cluster.organization_id')
    .leftJoin('node as n', 'n.id', 'cluster.node_id')
    .select(['cluster.id', 'cluster.name', 'cluster.runtime', 'cluster.reached_at as reachedAt'])
    .select(['cluster.capabilities', 'organization.name as organization', 'n.name as machine'])
    .select(sql<boolean>`coalesce(${isLost}, false)`.as('isMachineLost'))
    .select(sql<boolean>`n.drained_at is not null`.as('isMachineDrained'))
    .orderBy('organization.name')
    .orderBy('cluster.name')
    .execute();
  return rows.map((row) => ({ ...row, capabilities: row.capabilities as Capabilities | null }));
}
