import { sql, type Database } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { fenced, type Claim } from '#deployments/executor/claims.ts';
import type { StepName } from '#deployments/model/snapshot.ts';
import type { Span } from '#platform/telemetry/index.ts';

export interface StepPlace {
  claim: Claim;
  serviceId: string;
  position: number;
  name: StepName;
  /** The deployment's; a step that is run gets one in it. */
  span: Span;
}

/**
 * Runs one step with its log: a step that has succeeded before is not run again, its output is answered. The last statement of `run` and the
 * step's end are written by the caller in one transaction where both must hold together (`finish`).
 */
export async function runStep<T>(
  db: Database,
  place: StepPlace,
  run: () => Promise<T>,
  finish?: (db: Database, output: T) => Promise<void>,
): Promise<T> {
  const done = await beginStep(db, place);
  if (done) return done.output as T;
  const span = place.span.child(place.name, { 'quarterdeck.service.id': place.serviceId });
  try {
    const output = await run();
    await fenced(db, place.claim, async (inside) => {
      await endStep(inside, place, 'SUCCESS', output);
      // A step was finished: the count of fruitless pickups begins anew.
      await inside
        .updateTable('deployment')
        .set({ attempts: 1 })
        .where('organization_id', '=', organizationOf(place))
        .where('id', '=', place.claim.deployment.id)
        .execute();
      await finish?.(inside, output);
    });
    span.set({ 'quarterdeck.outcome': 'SUCCESS' });
    return output;
  } catch (error) {
    const cancelled = (error as { code?: string }).code === 'aborted' || (error as Error).name === 'AbortError';
    span.set({ 'quarterdeck.outcome': cancelled ? 'CANCEL' : 'ERROR' });
    if (!cancelled) span.fail((error as Error).name);
    await fenced(db, place.claim, (inside) =>
      endStep(inside, place, cancelled ? 'CANCEL' : 'ERROR', undefined, (error as Error).message),
    );
    throw error;
  } finally {
    span.end();
  }
}

const organizationOf = (place: StepPlace): string => place.claim.deployment.organization_id;

async function beginStep(db: Database, place: StepPlace): Promise<{ output: unknown } | undefined> {
  return fenced(db, place.claim, async (inside) => {
    const present = await inside
      .selectFrom('deployment_step')
      .select(['status', 'output'])
      .where('organization_id', '=', organizationOf(place))
      .where('deployment_id', '=', place.claim.deployment.id)
      .where('service_id', '=', place.serviceId)
      .where('position', '=', place.position)
      .executeTakeFirst();
    if (present?.status === 'SUCCESS') return { output: present.output };
    await inside
      .insertInto('deployment_step')
      .values({
        deployment_id: place.claim.deployment.id,
        organization_id: organizationOf(place),
        service_id: place.serviceId,
        position: place.position,
        name: place.name,
        status: 'STARTED',
        started_at: sql`now()`,
      })
      .onConflict((conflict) =>
        conflict
          .columns(['deployment_id', 'service_id', 'position'])
          .doUpdateSet({ status: 'STARTED', attempts: sql`deployment_step.attempts + 1`, error: null, ended_at: null }),
      )
      .execute();
    return undefined;
  });
}

const endStep = (
  db: Database,
  place: StepPlace,
  status: 'SUCCESS' | 'ERROR' | 'CANCEL',
  output?: unknown,
  error?: string,
) =>
  db
    .updateTable('deployment_step')
    .set({ status, output: output === undefined ? null : json(output), error: error ?? null, ended_at: sql`now()` })
    .where('organization_id', '=', organizationOf(place))
    .where('deployment_id', '=', place.claim.deployment.id)
    .where('service_id', '=', place.serviceId)
    .where('position', '=', place.position)
    .execute();
