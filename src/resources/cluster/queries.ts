import { kindsWith } from '#kernel/kinds.ts';
import type { Principal } from '#platform/access/principal.ts';
import { accessVersionOf } from '#platform/access/remembered.ts';
import { visibleEnvironments } from '#platform/access/visibility.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { lockSubject } from '#platform/database/locks.ts';
import { preparedRead } from '#platform/database/prepared.ts';
import { FIRST_ORGANIZATION } from '#platform/installation/index.ts';

/** A secret manager access as it may be shown: its secret is not selected. */
export interface AccessRow {
  id: string;
  name: string;
  endpoint: unknown;
  authentication: Record<string, unknown>;
  created_at: string;
  updated_at: string;
}

const accesses = sql<AccessRow[]>`coalesce((
  select json_agg(json_build_object('id', a.id, 'name', a.name, 'endpoint', a.endpoint, 'authentication', a.authentication,
    'created_at', a.created_at, 'updated_at', a.updated_at) order by a.created_at, a.id)
  from secret_manager_access a where a.cluster_id = cluster.id and a.organization_id = cluster.organization_id), '[]')`;

const hasKubeconfig = sql<boolean>`exists (
  select 1 from cluster_secret s where s.cluster_id = cluster.id and s.organization_id = cluster.organization_id and s.name = 'kubeconfig')`;

const selectClusters = (db: Database) =>
  db
    .selectFrom('cluster')
    .leftJoinLateral(
      (eb) =>
        eb
          .selectFrom('cluster_work')
          .select(['cluster_work.id as last_work_id', 'cluster_work.action as last_work_action'])
          .whereRef('cluster_work.cluster_id', '=', 'cluster.id')
          .orderBy('cluster_work.number', 'desc')
          .limit(1)
          .as('last_work'),
      (join) => join.onTrue(),
    )
    .selectAll('cluster')
    .select(['last_work.last_work_id', 'last_work.last_work_action'])
    .select([accesses.as('accesses'), hasKubeconfig.as('has_kubeconfig')]);

export type ClusterRow = Awaited<ReturnType<ReturnType<typeof selectClusters>['execute']>>[number];

/** Clusters of an organization in creation order. */
export const listClusters = (db: Database, scope: Scope) =>
  selectClusters(db)
    .where('cluster.organization_id', '=', scope.organizationId)
    .orderBy('cluster.created_at')
    .orderBy('cluster.id');

export const listLockedClusters = (db: Database, scope: Scope) =>
  listClusters(db, scope).where('cluster.locked_at', 'is not', null);

/** Runtime and machine of a cluster, with whether its organization is the operator's own. Every deployment asks for them. */
export const findRunPlace = preparedRead((db, organizationId: string, id: string) =>
  db
    .selectFrom('cluster')
    .select(['name', 'runtime', 'node_id'])
    .select(sql<boolean>`organization_id is not distinct from ${FIRST_ORGANIZATION}`.as('is_first'))
    .where('organization_id', '=', organizationId)
    .where('id', '=', id),
);

const selectById = preparedRead((db, organizationIds: string[], id: string, userId: string | null) =>
  selectClusters(db)
    .select(accessVersionOf(userId).as('accessVersion'))
    .where('cluster.organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('cluster.id', '=', id),
);

export const findClusterById = async (
  db: Database,
  organizationIds: string[],
  id: string,
  userId: string | null = null,
) => (await selectById(db, organizationIds, id, userId))[0];

/** Locks the row against other writes until the commit: work is numbered and begun under this lock. */
export const lockCluster = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('cluster')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export interface NewCluster {
  id: string;
  organization_id: string;
  name: string;
  description: string | null;
  runtime: string;
  node_id: string | null;
  region: string;
  cloud_provider: string;
  is_default: boolean;
  production: boolean;
  credentials_id: string | null;
  credentials_name: string | null;
  spec: Record<string, unknown>;
}

export const insertClusterRow = (db: Database, { spec, ...cluster }: NewCluster) =>
  db
    .insertInto('cluster')
    .values({ ...cluster, spec: json(spec) })
    .execute();

/** Configuration that a request can change. Each change raises the version, so that the cluster shows OUT_OF_DATE. */
export interface ClusterChange {
  name?: string;
  description?: string | null;
  region?: string;
  production?: boolean;
  credentials_id?: string | null;
  credentials_name?: string | null;
  spec?: Record<string, unknown>;
  advanced_settings?: Record<string, unknown>;
  routing_table?: unknown[];
  dns_provider?: Record<string, unknown>;
}

const JSON_COLUMNS = new Set(['spec', 'advanced_settings', 'routing_table', 'dns_provider']);

export const updateCluster = (db: Database, scope: Scope, id: string, change: ClusterChange) =>
  db
    .updateTable('cluster')
    .set({
      ...Object.fromEntries(
        Object.entries(change).map(([key, value]) => [key, JSON_COLUMNS.has(key) ? json(value) : value]),
      ),
      version: sql`version + 1`,
      updated_at: sql`now()`,
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export interface Lock {
  locked_at: Date;
  locked_by: string;
  lock_reason: string;
  lock_ttl_days: number | null;
  lock_expires_at: Date | null;
}

const NO_LOCK = { locked_at: null, locked_by: null, lock_reason: null, lock_ttl_days: null, lock_expires_at: null };

/** Sets the lock, or removes it with null. */
export const setLock = (db: Database, scope: Scope, id: string, lock: Lock | null) =>
  db
    .updateTable('cluster')
    .set({ ...(lock ?? NO_LOCK), updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Finds and locks the clusters of any organization whose lock's time is over; for the worker. */
export const lockExpiredLocks = (db: Database, now: Date) =>
  db
    .selectFrom('cluster')
    .select(['id', 'organization_id', 'name', 'lock_reason', 'locked_by', 'lock_expires_at'])
    .where('lock_expires_at', '<=', now)
    .forUpdate()
    .skipLocked()
    .execute();

export const setState = (db: Database, scope: Scope, id: string, state: string) =>
  db
    .updateTable('cluster')
    .set({ state })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteClusterRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('cluster').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Tells whether the organization has a cluster. The answer holds until the commit, so that only one becomes the first. */
export const hasClusters = async (db: Database, scope: Scope): Promise<boolean> => {
  await lockSubject(db, 'first cluster of organization', scope.organizationId);
  const found = await db
    .selectFrom('cluster')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
};

/** Finds the names of a few environments on a cluster, and the number of all. */
export const findEnvironmentNames = async (db: Database, scope: Scope, clusterId: string) => {
  const rows = await db
    .selectFrom('environment')
    .select(['name', sql<number>`count(*) over ()`.as('total')])
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .orderBy('created_at')
    .limit(3)
    .execute();
  return { names: rows.map((row) => row.name), total: rows[0]?.total ?? 0 };
};

export interface EnvironmentOnCluster {
  environment_id: string;
  environment_name: string;
  project_id: string;
  project_name: string;
  services: { id: string; name: string; type: string }[];
}

/** Environments on a cluster that the caller may see, with those services whose kind the reference names here. */
export const listEnvironmentsOnCluster = (
  db: Database,
  principal: Principal,
  scope: Scope,
  clusterId: string,
): Promise<EnvironmentOnCluster[]> =>
  db
    .selectFrom('environment')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .select([
      'environment.id as environment_id',
      'environment.name as environment_name',
      'project.id as project_id',
      'project.name as project_name',
      sql<EnvironmentOnCluster['services']>`coalesce((
        select json_agg(json_build_object('id', s.id, 'name', s.name, 'type', s.kind) order by s.created_at, s.id)
        from service s where s.environment_id = environment.id and s.organization_id = environment.organization_id
          and s.kind = any(${kindsWith('linked')})), '[]')`.as('services'),
    ])
    .where('environment.organization_id', '=', scope.organizationId)
    .where('environment.cluster_id', '=', clusterId)
    .where(visibleEnvironments(principal, scope.organizationId))
    .orderBy('environment.created_at')
    .orderBy('environment.id')
    .execute();

/** Machines that clusters can live on, the one seen last first. */
export const listNodes = (db: Database) =>
  db.selectFrom('node').selectAll().where('is_temporary', '=', false).orderBy('seen_at', 'desc').execute();

/** Finds a git token that a body names and locks it against deletion until the commit. */
export const holdGitToken = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('git_token')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst();

/** Clusters of an organization that name credentials, in creation order. */
export const listClustersWithCredentials = (db: Database, scope: Scope) =>
  db
    .selectFrom('cluster')
    .select(['id', 'name', 'cloud_provider', 'credentials_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('credentials_id', 'is not', null)
    .orderBy('created_at')
    .orderBy('id');

/** Renames credentials in clusters, which store the name beside the id. */
export const renameCredentialsOfClusters = (db: Database, scope: Scope, id: string, name: string) =>
  db
    .updateTable('cluster')
    .set({ credentials_name: name })
    .where('organization_id', '=', scope.organizationId)
    .where('credentials_id', '=', id)
    .execute();
