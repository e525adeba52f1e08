import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import * as queries from '#services/capabilities/service/actions/queries.ts';
import { placeOfTarget, submit, type ActionOptions } from '#services/capabilities/service/actions/request.ts';
import { placeOfService } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/**
 * Deletes a service: its teardown is requested, and the row goes at its end; one of which nothing was ever applied is gone at once
 * (docs/contributing/rules.md 19). A second delete changes nothing.
 */
export async function deleteService(
  context: Context,
  service: ServiceTarget,
  options: Pick<ActionOptions, 'bestEffort' | 'choices'>,
): Promise<void> {
  if (service.deleting) return;
  await queries.lockEnvironmentRow(context.db, service, service.environmentId);
  const scope = { organizationId: service.organizationId };
  await audit(context, {
    organizationId: service.organizationId,
    type: 'DELETE',
    ...placeOfService(service),
    before: { id: service.id, name: service.name },
  });
  const gone = await queries.listNeverApplied(context.db, scope, [service.id]);
  if (gone.length > 0) {
    await queries.deleteServices(context.db, scope, gone);
    return;
  }
  await queries.markServicesDeleting(context.db, scope, [service.id]);
  await submit(context, placeOfTarget(service), 'DELETE', [service.id], options);
}
