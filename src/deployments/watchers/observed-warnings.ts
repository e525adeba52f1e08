import { setWarning, type ObservedWarning } from '#deployments/warnings.ts';
import { sql, type Database } from '#platform/database/index.ts';
import type { DriftedField, Observation } from '#runtimes/runtime.ts';

/** Messages of the warnings that observation makes, by code. */
export type ObservedWarnings = Partial<Record<ObservedWarning, string>>;

/** Subjects of the warnings: a service has one of each. */
const SUBJECTS: Record<ObservedWarning, string> = { INSTANCES_NOT_READY: 'instances', CHANGED_IN_CLUSTER: 'fields' };
const CODES = Object.keys(SUBJECTS) as ObservedWarning[];

/** Fields that a message names. */
const MOST_FIELDS = 5;
const MOST_CHARACTERS = 2000;

/** Expression for the `ObservedWarnings` of a service. */
export const observedWarnings = sql<ObservedWarnings>`(select coalesce(json_object_agg(w.code, w.message), '{}') from service_warning w
  where w.service_id = service.id and w.code = any(${CODES}::text[]))`;

/** Service whose warnings are kept. */
interface Warned {
  id: string;
  organization_id: string;
  /** Warnings that are stored. */
  warnings: ObservedWarnings;
}

/** Shows what an observation tells with the service's status. Writes only what is new. */
export async function noteObserved(
  db: Database,
  { id, organization_id: organizationId, warnings }: Warned,
  observation: Observation,
): Promise<void> {
  const present = warningsOf(observation);
  for (const code of CODES) {
    const message = present[code]?.slice(0, MOST_CHARACTERS);
    if (message === warnings[code]) continue;
    const subject = SUBJECTS[code];
    if (message !== undefined) await setWarning(db, { organizationId }, id, { code, subject, message });
    else
      await db
        .deleteFrom('service_warning')
        .where('organization_id', '=', organizationId)
        .where('service_id', '=', id)
        .where('code', '=', code)
        .execute();
  }
}

/** Deletes the warnings of services on clusters that are not meant to run any more. */
export const dropObserved = (db: Database, clusterIds: string[]) =>
  sql`delete from service_warning w using service s join environment e on e.id = s.environment_id
    where s.id = w.service_id and w.code = any(${CODES}::text[]) and e.cluster_id = any(${clusterIds}::uuid[])
      and s.wanted <> 'running'`.execute(db);

function warningsOf({ state, message, drift = [] }: Observation): ObservedWarnings {
  const isShort = state === 'partial' || state === 'failed' || state === 'absent';
  const gone = 'Nothing of the service is left in its cluster: it is deployed again.';
  return {
    ...(isShort ? { INSTANCES_NOT_READY: state === 'absent' ? gone : message } : {}),
    ...(drift.length > 0 ? { CHANGED_IN_CLUSTER: driftMessage(drift) } : {}),
  };
}

function driftMessage(drift: DriftedField[]): string {
  const told = drift.slice(0, MOST_FIELDS).map(({ object, field, manager }) => {
    if (field === '') return `${object} was removed`;
    return `${field} of ${object} was changed${manager === null ? '' : ` by ${manager}`}`;
  });
  const more = drift.length > told.length ? [`${drift.length - told.length} more`] : [];
  return `${[...told, ...more].join('; ')}. The next deployment puts it back.`;
}
