import { TAKE_DOWN } from '#deployments/model/states.ts';
import type { ServiceStatusRow } from '#deployments/status-queries.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';

/** Problems that a running service may have with its disk, for programs; the message beside the code is for people. */
const DISK_WARNINGS = {
  INSTANCE_DISK_LIMIT:
    'An instance or execution wrote more disk than it may besides its volumes: the instance is started anew from its image, the execution is ended.',
  VOLUME_NEARLY_FULL: 'A volume takes 80 % of its size.',
  VOLUME_FULL: 'A volume takes all of its size.',
  VOLUME_LIMIT:
    'A volume takes more than the operator allows of its size: the service is stopped, executions are ended.',
} as const;
export type DiskWarning = keyof typeof DISK_WARNINGS;

/** Problems of a running service that observation of its cluster tells. */
const OBSERVED_WARNINGS = {
  INSTANCES_NOT_READY: 'Fewer instances are ready than should be.',
  CHANGED_IN_CLUSTER:
    'Somebody has changed or removed in the cluster what the release set: the next deployment puts it back.',
} as const;
export type ObservedWarning = keyof typeof OBSERVED_WARNINGS;

/** Problems of services that follow a tag of an image. */
const TAG_WARNINGS = {
  TAG_NOT_DEPLOYED: 'The tag of the image stands for another image now, and the service could not be deployed with it.',
} as const;
export type TagWarning = keyof typeof TAG_WARNINGS;

/** Reasons for which no worker begins a waiting request. */
const WAITING_WARNINGS = {
  NODE_DRAINED: 'The request waits because its machine is drained: it begins once an operator ends that.',
  NODE_LOST: 'The request waits because its machine shows no sign of life.',
} as const;
type WaitingWarning = keyof typeof WAITING_WARNINGS;

/** All warnings that a status may have. */
export const WARNING_CODES = { ...DISK_WARNINGS, ...OBSERVED_WARNINGS, ...TAG_WARNINGS, ...WAITING_WARNINGS };
export type WarningCode = keyof typeof WARNING_CODES;

/** Warning about a service. */
export interface ServiceWarning {
  code: DiskWarning | ObservedWarning | TagWarning;
  /** Id of the volume, name of the instance, or `instances`, `fields` or `tag` for all of the service. */
  subject: string;
  message: string;
}

/** Returns the warnings about a waiting request: the reason for which no worker begins it. */
export function waitingWarnings({ machine, action }: Pick<ServiceStatusRow, 'machine' | 'action'>) {
  const warnings: { code: WaitingWarning; message: string; since: string }[] = [];
  const takesDown = TAKE_DOWN.some((known) => known === action);
  if (machine?.drainedAt && !takesDown)
    warnings.push({
      code: 'NODE_DRAINED',
      message:
        'The machine of the cluster is drained: the request begins once an operator has ended that with `quarterdeck node undrain`.',
      since: machine.drainedAt,
    });
  if (machine?.lostSince)
    warnings.push({
      code: 'NODE_LOST',
      message:
        'The machine of the cluster shows no sign of life: the request begins once Quarterdeck runs there again.',
      since: machine.lostSince,
    });
  return warnings;
}

/** Sets the warnings of a service about a subject, in place of those that it had. Answers whether it is new. */
export async function setWarning(
  db: Database,
  { organizationId }: Scope,
  serviceId: string,
  { code, subject, message }: ServiceWarning,
): Promise<boolean> {
  await db
    .deleteFrom('service_warning')
    .where('organization_id', '=', organizationId)
    .where('service_id', '=', serviceId)
    .where('subject', '=', subject)
    .where('code', '<>', code)
    .execute();
  const known = await db
    .updateTable('service_warning')
    .set({ message })
    .where('organization_id', '=', organizationId)
    .where('service_id', '=', serviceId)
    .where('subject', '=', subject)
    .where('code', '=', code)
    .executeTakeFirst();
  if (known.numUpdatedRows > 0n) return false;
  await db
    .insertInto('service_warning')
    .values({ organization_id: organizationId, service_id: serviceId, code, subject, message })
    .execute();
  return true;
}

/** Removes the warnings about tags of services that were saved or released since, in any organization. */
export const clearTagWarnings = (db: Database) =>
  sql`delete from service_warning w using service s left join release r on r.id = s.release_id
    where s.id = w.service_id and s.organization_id = w.organization_id and w.code = ${'TAG_NOT_DEPLOYED' satisfies TagWarning}
      and greatest(s.updated_at, r.created_at) > w.created_at`.execute(db);
