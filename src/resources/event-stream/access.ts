import type { Action } from '#platform/access/actions.ts';
import { grantIn, isLimited, permits, type Principal } from '#platform/access/principal.ts';
import { seesGoneEnvironments } from '#platform/access/visibility.ts';
import type { StreamRow, StreamType } from '#platform/events/stream.ts';

/** Action that reading the same data over REST requires. */
const ACTION: Record<StreamType, Action> = {
  deployment: 'environment.read',
  'service-state': 'service.read',
  'service-warning': 'service.read',
  step: 'service.read',
  audit: 'event.read',
  log: 'environment.read',
};

/**
 * Returns whether a caller may read an event: what role or policy does not permit is left out, as in lists. Of an environment that is gone the mode is
 * not known any more: its events are for those who see every mode of the project.
 */
export function mayRead(principal: Principal, row: StreamRow): boolean {
  const [action, organizationId] = [ACTION[row.type], row.organization_id];
  if (row.environment_id && row.mode === null && row.project_id) {
    const grant = grantIn(principal, organizationId);
    if (
      !grant ||
      (isLimited(grant) && !seesGoneEnvironments(principal, { organizationId, projectId: row.project_id }, action))
    )
      return false;
  }
  // The content of a custom role names every project: callers who do not see all projects read roles at the roles' own address.
  if (row.audit?.sub_target_type === 'CUSTOM_ROLE') {
    const grant = grantIn(principal, organizationId);
    if (!grant || isLimited(grant)) return false;
  }
  return permits(principal, action, {
    organizationId,
    projectId: row.project_id ?? undefined,
    environmentId: row.environment_id ?? undefined,
    mode: row.mode ?? undefined,
    clusterId: row.cluster_id ?? undefined,
  });
}
