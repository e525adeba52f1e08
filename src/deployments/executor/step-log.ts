import type { RawBuilder } from 'kysely';
import { storable } from '#kernel/storable.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Claim } from '#deployments/executor/claims.ts';
import type { StepName } from '#deployments/model/snapshot.ts';

/** Position of a step in its deployment. */
export interface StepPlace {
  claim: Claim;
  serviceId: string;
  position: number;
  name: StepName;
}

/** Steps that earlier attempts recorded for a deployment, by service and position (`stepKey`). */
export type StepRecords = Map<string, { status: string; output: unknown }>;

export const stepKey = (place: Pick<StepPlace, 'serviceId' | 'position'>): string =>
  `${place.serviceId}/${place.position}`;

/** Returns the steps that earlier attempts began: a step that succeeded is not run again, its output is taken. */
export async function loadSteps(db: Database, claim: Claim): Promise<StepRecords> {
  const rows = await db
    .selectFrom('deployment_step')
    .select(['service_id', 'position', 'status', 'output'])
    .where('organization_id', '=', claim.deployment.organization_id)
    .where('deployment_id', '=', claim.deployment.id)
    .execute();
  return new Map(rows.map((row) => [stepKey({ serviceId: row.service_id, position: row.position }), row]));
}

/** Records the beginning of a step; a step that an earlier attempt began begins anew. */
export const beginStep = (db: Database, place: StepPlace) =>
  stepInsert(db, place, { status: 'STARTED' }).onConflict((conflict) =>
    conflict
      .columns(['deployment_id', 'service_id', 'position'])
      .doUpdateSet({ status: 'STARTED', attempts: sql`deployment_step.attempts + 1`, error: null, ended_at: null }),
  );

/** Records a step that had nothing to wait for: it begins and ends in one moment. */
export const passStep = (db: Database, place: StepPlace) => {
  const ended = { status: 'SUCCESS', output: json({}), ended_at: sql<Date>`now()` };
  return stepInsert(db, place, ended).onConflict((conflict) =>
    conflict
      .columns(['deployment_id', 'service_id', 'position'])
      .doUpdateSet({ ...ended, attempts: sql`deployment_step.attempts + 1`, error: null }),
  );
};

/** Records that a step has ended with success. */
export const endStep = (db: Database, place: StepPlace, output: unknown) =>
  db
    .updateTable('deployment_step')
    .set({ status: 'SUCCESS', output: json(output), error: null, ended_at: sql`now()` })
    .where('organization_id', '=', place.claim.deployment.organization_id)
    .where('deployment_id', '=', place.claim.deployment.id)
    .where('service_id', '=', place.serviceId)
    .where('position', '=', place.position);

/** Records that a step has failed or was cancelled, also before it began. */
export const failStep = (db: Database, place: StepPlace, status: 'ERROR' | 'CANCEL', message: string) => {
  const error = storable(message);
  return stepInsert(db, place, { status, error, ended_at: sql<Date>`now()` }).onConflict((conflict) =>
    conflict
      .columns(['deployment_id', 'service_id', 'position'])
      .doUpdateSet({ status, error, output: null, ended_at: sql`now()` }),
  );
};

const stepInsert = (
  db: Database,
  place: StepPlace,
  columns: { status: string; output?: string; error?: string; ended_at?: RawBuilder<Date> },
) =>
  db.insertInto('deployment_step').values({
    deployment_id: place.claim.deployment.id,
    organization_id: place.claim.deployment.organization_id,
    service_id: place.serviceId,
    position: place.position,
    name: place.name,
    started_at: sql`now()`,
    ...columns,
  });
