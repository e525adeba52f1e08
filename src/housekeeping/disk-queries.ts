import { sql, type Database } from '#platform/database/index.ts';
import type { DiskTotals } from '#housekeeping/disk-rules.ts';

/** Service that takes disk, with what the rules need of it. */
export type MeasuredService = Awaited<ReturnType<typeof listMeasured>>[number];

/** Services of these ids, of whatever organization. */
export const listMeasured = (db: Database, ids: string[]) =>
  db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select(['service.id', 'service.organization_id', 'service.kind', 'service.name', 'service.spec', 'service.wanted'])
    .select(['environment.id as environment_id', 'environment.name as environment_name', 'environment.cluster_id'])
    .select(['project.id as project_id', 'project.name as project_name', 'cluster.locked_at', 'service.handle'])
    .where('service.id', '=', sql<string>`any(${ids})`)
    .execute();

/** Organizations of deployments, by id: their checkouts lie in folders of these names. */
export async function organizationsOfDeployments(db: Database, ids: string[]): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('deployment')
    .select(['id', 'organization_id'])
    .where('id', '=', sql<string>`any(${ids})`)
    .execute();
  return new Map(rows.map(({ id, organization_id }) => [id, organization_id]));
}

/** Stores what organizations take on a machine, in place of what was measured before. */
export async function saveDiskUse(db: Database, nodeId: string, totals: Map<string, DiskTotals>): Promise<void> {
  const rows = [...totals].flatMap(([organization_id, own]) =>
    [...own].map(([kind, { bytes, isWhole }]) => ({
      node_id: nodeId,
      organization_id,
      kind,
      bytes: Math.round(bytes),
      is_whole: isWhole,
    })),
  );
  await db.transaction().execute(async (inside) => {
    await inside.deleteFrom('disk_use').where('node_id', '=', nodeId).execute();
    // One that was deleted since it was measured is left out.
    await sql`insert into disk_use (node_id, organization_id, kind, bytes, is_whole)
      select given.node_id, given.organization_id, given.kind, given.bytes, given.is_whole
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as given(node_id uuid, organization_id uuid, kind text, bytes bigint, is_whole boolean)
      join organization on organization.id = given.organization_id`.execute(inside);
  });
}

/** Bytes that an organization takes on a machine, by kind, the most first. */
export const findDiskUse = (db: Database, nodeId: string, organizationId: string) =>
  db
    .selectFrom('disk_use')
    .select(['kind', 'bytes'])
    .where('node_id', '=', nodeId)
    .where('organization_id', '=', organizationId)
    .orderBy('bytes', 'desc')
    .execute();

/** Deletes the warnings of a runtime on a machine that no longer hold: about volumes unless kept, about instances after a day. */
export async function dropWarnings(
  db: Database,
  { nodeId, runtime }: { nodeId: string; runtime: string },
  kept: { serviceId: string; subject: string }[],
): Promise<void> {
  await sql`delete from service_warning w
    using service s join environment e on e.id = s.environment_id join cluster c on c.id = e.cluster_id
    where s.id = w.service_id and c.node_id = ${nodeId} and c.runtime = ${runtime} and (
    w.code = 'INSTANCE_DISK_LIMIT' and w.created_at < now() - interval '1 day'
    or w.code <> 'INSTANCE_DISK_LIMIT' and not exists (
      select from jsonb_to_recordset(${JSON.stringify(kept)}::jsonb) as given("serviceId" uuid, subject text)
      where given."serviceId" = w.service_id and given.subject = w.subject))`.execute(db);
}

/** References of registry images that kept releases on a machine name. */
export async function listReleasedImages(db: Database, nodeId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('release')
    .innerJoin('service', 'service.id', 'release.service_id')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select('release.image')
    .distinct()
    .where('cluster.node_id', '=', nodeId)
    .where('release.image', 'is not', null)
    .execute();
  return rows.map(({ image }) => image!);
}

/** Largest uses of disk by organization and machine, as they were measured last. */
export async function listLargest(db: Database) {
  const { rows } = await sql<{ organization: string; machine: string; bytes: number }>`
    select organization_id as organization, node.name as machine, sum(bytes)::float8 as bytes
    from disk_use join node on node.id = disk_use.node_id
    group by organization_id, node.id order by sum(bytes) desc limit 20`.execute(db);
  return rows;
}
