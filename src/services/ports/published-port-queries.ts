import { sql, type Database, type Scope } from '#platform/database/index.ts';

export interface PublishedPort {
  protocol: 'TCP' | 'UDP';
  port: number;
}

/** Service of an organization, with the environment whose cluster names the machine. */
export interface PortHolder extends Scope {
  environmentId: string;
  serviceId: string;
}

/** Selects the machine of an environment's cluster, or the cluster itself if it has no machine. */
const placeOf = ({ organizationId, environmentId }: PortHolder) => sql`
  select coalesce(c.node_id, c.id) as id from environment e
  join cluster c on c.organization_id = e.organization_id and c.id = e.cluster_id
  where e.organization_id = ${organizationId} and e.id = ${environmentId}`;

/** Claims a port of the machine unless it has a holder; waits for a transaction that is about to claim it. */
export async function claimPort(db: Database, holder: PortHolder, { protocol, port }: PublishedPort): Promise<void> {
  await sql`
    insert into published_port (place_id, protocol, port, organization_id, service_id)
    select place.id, ${protocol}, ${port}, ${holder.organizationId}, ${holder.serviceId} from (${placeOf(holder)}) place
    on conflict do nothing`.execute(db);
}

/** Lists the ports that a service has claimed on the machine. */
export async function listClaimed(db: Database, holder: PortHolder): Promise<PublishedPort[]> {
  const { rows } = await sql<PublishedPort>`
    select claim.protocol, claim.port from published_port claim, (${placeOf(holder)}) place
    where claim.organization_id = ${holder.organizationId} and claim.service_id = ${holder.serviceId}
      and claim.place_id = place.id`.execute(db);
  return rows;
}

/** Lists the ports that services of any organization have claimed on the machine of an environment. */
export async function listTaken(db: Database, holder: PortHolder, protocol: 'TCP' | 'UDP'): Promise<Set<number>> {
  const { rows } = await sql<{ port: number }>`
    select claim.port from published_port claim, (${placeOf(holder)}) place
    where claim.place_id = place.id and claim.protocol = ${protocol}`.execute(db);
  return new Set(rows.map(({ port }) => port));
}

/** Counts the ports of an organization on all machines. */
export async function countOfOrganization(db: Database, { organizationId }: Scope): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from published_port where organization_id = ${organizationId}`.execute(db);
  return rows[0]!.count;
}
