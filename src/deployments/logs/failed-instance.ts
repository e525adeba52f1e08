import { storable } from '#kernel/storable.ts';
import type { Database, Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Mask } from '#deployments/logs/writer.ts';
import type { LogLine } from '#runtimes/runtime.ts';

/** Lines of an instance that are kept once it is gone. */
const KEPT_LINES = 200;

export const maskLines = (lines: readonly LogLine[], mask: Mask): LogLine[] =>
  lines.slice(-KEPT_LINES).map((line) => ({ ...line, text: storable(mask(line.text)) }));

/** Keeps the last lines of an instance that did not get ready, in place of those of an earlier one. Not sent yet. */
export const keepLastLines = (
  db: Database,
  { organizationId }: Scope,
  { serviceId, deploymentId }: { serviceId: string; deploymentId: string },
  lines: readonly LogLine[],
) =>
  db
    .insertInto('failed_instance_log')
    .values({
      service_id: serviceId,
      organization_id: organizationId,
      deployment_id: deploymentId,
      lines: json(lines),
    })
    .onConflict((conflict) =>
      conflict.column('service_id').doUpdateSet((set) => ({
        deployment_id: set.ref('excluded.deployment_id'),
        lines: set.ref('excluded.lines'),
        created_at: set.ref('excluded.created_at'),
      })),
    );

/** Lines that were kept of the newest instance of a service that did not get ready, the oldest first. */
export async function readLastLines(db: Database, { organizationId }: Scope, serviceId: string): Promise<LogLine[]> {
  const row = await db
    .selectFrom('failed_instance_log')
    .select('lines')
    .where('organization_id', '=', organizationId)
    .where('service_id', '=', serviceId)
    .executeTakeFirst();
  return (row?.lines as unknown as LogLine[] | undefined) ?? [];
}
