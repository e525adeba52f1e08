import type { Database, Scope } from '#platform/database/index.ts';

/** Problems that a running service may have, for programs; the message beside the code is for people. */
export const WARNING_CODES = {
  INSTANCE_DISK_LIMIT:
    'An instance or execution wrote more disk than it may besides its volumes: the instance is started anew from its image, the execution is ended.',
  VOLUME_NEARLY_FULL: 'A volume takes 80 % of its size.',
  VOLUME_FULL: 'A volume takes all of its size.',
  VOLUME_LIMIT:
    'A volume takes more than the operator allows of its size: the service is stopped, executions are ended.',
} as const;
export type WarningCode = keyof typeof WARNING_CODES;

/** Warning about a service. */
export interface ServiceWarning {
  code: WarningCode;
  /** Id of the volume, or name of the instance. */
  subject: string;
  message: string;
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
