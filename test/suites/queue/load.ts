import pg from 'pg';
import { newId } from '#kernel/ids.ts';
import { claimNext, type Claim } from '#deployments/executor/claims.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { lockLiveness } from '#platform/database/locks.ts';

const NODE = '00000000-0000-4000-8000-000000000001';

export interface Load {
  organizations: number;
  environments: number;
  /** Deployments that wait in each environment. */
  waiting: number;
}

/** Fills the queue: organizations with one cluster each, environments, and waiting deployments in each of them. */
export async function fillQueue(db: Database, load: Load): Promise<void> {
  const name = newId();
  await sql`with organizations as (
      insert into organization (id, name, data_key) select gen_random_uuid(), ${name} || n, '' from generate_series(1, ${load.organizations}) as n returning id
    ), clusters as (
      insert into cluster (id, organization_id, name, runtime) select gen_random_uuid(), id, 'c', 'fake' from organizations returning id, organization_id
    ), projects as (
      insert into project (id, organization_id, name) select gen_random_uuid(), id, 'p' from organizations returning id, organization_id
    )
    insert into environment (id, organization_id, project_id, cluster_id, name, mode)
    select gen_random_uuid(), p.organization_id, p.id, c.id, 'e' || n, 'DEVELOPMENT'
    from projects p join clusters c using (organization_id) cross join generate_series(1, ${load.environments}) as n`.execute(
    db,
  );
  await sql`insert into deployment (id, organization_id, environment_id, cluster_id, number, action, trigger, whole_environment, format, snapshot,
      requested_by_name, origin, automatic, kinds, created_at)
    select gen_random_uuid(), e.organization_id, e.id, e.cluster_id, n, 'DEPLOY', 'DEPLOY', true, 3, '{}', 'x', 'API', n % 2 = 0, '{APPLICATION}',
      clock_timestamp()
    from environment e join organization o on o.id = e.organization_id cross join generate_series(1, ${load.waiting}) as n
    where o.name like ${`${name}%`} order by n, e.id`.execute(db);
  await sql`vacuum analyze`.execute(db);
}

/** Marks workers 1 to `count` as live until the returned function is called. */
export async function showWorkers(config: pg.ClientConfig, count: number): Promise<() => Promise<void>> {
  const client = new pg.Client(config);
  await client.connect();
  for (let id = 1; id <= count; id++) await lockLiveness(client, id);
  return () => client.end();
}

export interface Claimed {
  id: string;
  environmentId: string;
  organizationId: string;
  number: number;
  /** Duration of the claim in milliseconds. */
  took: number;
  /** Running deployments of the organization at the claim, itself included. */
  atOnce: number;
}

export interface LoopOptions {
  loops: number;
  perOrganization: number;
  /** Ends all loops once it returns true. */
  until?: () => boolean;
  /** Called and awaited between the claim and the end of a deployment. */
  hold?: () => Promise<unknown>;
}

/** Claims and ends deployments in parallel loops until none waits. Returns the claimed deployments in the order of their claims. */
export async function claimInLoops(
  db: Database,
  { loops, perOrganization, until, hold }: LoopOptions,
): Promise<Claimed[]> {
  const claimed: Claimed[] = [];
  const running = new Map<string, number>();
  const count = (organizationId: string, by: number) => {
    const now = (running.get(organizationId) ?? 0) + by;
    running.set(organizationId, now);
    return now;
  };
  const loop = async (workerId: number) => {
    while (!until?.()) {
      const began = performance.now();
      const claims = await claimNext(db, {
        workerId,
        nodeId: NODE,
        organizationSlots: perOrganization,
        kinds: ['APPLICATION'],
        limit: 1,
      });
      const took = performance.now() - began;
      for (const claim of claims) {
        const { id, environment_id, organization_id, number } = claim.deployment;
        const atOnce = count(organization_id, 1);
        claimed.push({ id, environmentId: environment_id, organizationId: organization_id, number, took, atOnce });
        await hold?.();
        count(organization_id, -1);
        await end(db, claim);
      }
      if (claims.length === 0 && !(await isAnyWaiting(db))) return;
    }
  };
  await Promise.all(Array.from({ length: loops }, (_, index) => loop(index + 1)));
  return claimed;
}

const end = (db: Database, { deployment, token }: Claim) =>
  db
    .updateTable('deployment')
    .set({ status: 'ENDED', outcome: 'SUCCESS', claim_token: null, worker_id: null, ended_at: sql`clock_timestamp()` })
    .where('organization_id', '=', deployment.organization_id)
    .where('id', '=', deployment.id)
    .where('claim_token', '=', token)
    .execute();

const isAnyWaiting = async (db: Database): Promise<boolean> =>
  (await sql`select from deployment where status = 'WAITING' limit 1`.execute(db)).rows.length > 0;
