import { sql, type Database } from '#platform/database/index.ts';
import { requireHeld } from '#platform/work/index.ts';
import { EXECUTIONS, type ClaimedExecution } from '#deployments/executions/claims.ts';
import type { LogChunk } from '#deployments/executions/log.ts';
import { columnsOf, type ExecutionEnd } from '#deployments/executions/queries.ts';
import type { Resolution, ResolvedService, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';

/** Returns the release that a scheduled execution runs. Throws an error for people if the release is no longer kept. */
export async function findRelease(db: Database, claim: ClaimedExecution) {
  const row = await db
    .selectFrom('release')
    .innerJoin('deployment', 'deployment.id', 'release.deployment_id')
    .select(['release.snapshot', 'release.resolution', 'release.image', 'release.deployment_id', 'deployment.number'])
    .select(sql<FrozenVariable[]>`coalesce(deployment.snapshot -> 'shared', '[]')`.as('shared'))
    .where('release.organization_id', '=', claim.organization_id)
    .where('release.id', '=', claim.release_id)
    .executeTakeFirst();
  if (!row?.image) throw new Error('The release that was to be run is no longer kept: deploy the job again.');
  return {
    ...row,
    image: row.image,
    snapshot: row.snapshot as ServiceSnapshot,
    resolution: row.resolution as ResolvedService & Partial<Resolution>,
  };
}

/** Records the names of commands that the runtime may have from now on. */
export const addTasks = (db: Database, claim: ClaimedExecution, tasks: string[]) =>
  EXECUTIONS.write(db, claim, { tasks });

/** Resets the count of pickups when an attempt makes progress: it did not cause the end of earlier workers. */
export const forgetPickups = (db: Database, claim: ClaimedExecution) => EXECUTIONS.write(db, claim, { pickups: 0 });

export const end = (db: Database, claim: ClaimedExecution, how: ExecutionEnd) =>
  EXECUTIONS.end(db, claim, columnsOf(how));

/** Deletes the stored log: `Runtime.run` replays the output of an adopted execution from the start. */
export const beginLog = (db: Database, claim: ClaimedExecution) =>
  db
    .deleteFrom('job_execution_log')
    .where('organization_id', '=', claim.organization_id)
    .where('execution_id', '=', sql<string>`(${held(db, claim)})`)
    .execute();

const held = (db: Database, { organization_id, id, token }: ClaimedExecution) =>
  db
    .selectFrom('job_execution')
    .select('id')
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .where('claim_token', '=', token);

/** Stores a part of the log while the claim holds. */
export async function storeChunk(db: Database, claim: ClaimedExecution, chunk: LogChunk): Promise<void> {
  const { rows } = await sql`insert into job_execution_log (execution_id, organization_id, sequence, content, lines)
    select id, organization_id, ${chunk.sequence}, ${chunk.content}, ${chunk.lines} from job_execution
    where organization_id = ${claim.organization_id} and id = ${claim.id} and claim_token = ${claim.token}
    returning sequence`.execute(db);
  requireHeld(rows.length > 0);
}

/** Returns whether another worker goes on with an execution that this worker has lost; true while the database is away. */
export async function isHeldByOther(db: Database, claim: ClaimedExecution): Promise<boolean> {
  try {
    const row = await db
      .selectFrom('job_execution')
      .select('state')
      .where('organization_id', '=', claim.organization_id)
      .where('id', '=', claim.id)
      .executeTakeFirst();
    return row?.state === 'RUNNING';
  } catch {
    return true;
  }
}
