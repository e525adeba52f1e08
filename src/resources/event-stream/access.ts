import type { Action } from '#platform/access/actions.ts';
import { hiddenPlaces, permits, type Principal } from '#platform/access/principal.ts';
import type { StreamRow, StreamType } from '#platform/events/stream.ts';

/** What reading the same over REST takes. */
const ACTION: Record<StreamType, Action> = {
  deployment: 'environment.read',
  'service-state': 'service.read',
  step: 'service.read',
  audit: 'event.read',
  log: 'environment.read',
};

/**
 * Whether a caller may read an event: what a role has NO_ACCESS to is left out, as in lists. Of an environment that is gone the mode is not
 * known any more: it is hidden in a project of which anything is (resources/event).
 */
export function mayRead(principal: Principal, row: StreamRow): boolean {
  if (row.environment_id && row.mode === null && hidesAnythingIn(principal, row)) return false;
  return permits(principal, ACTION[row.type], {
    organizationId: row.organization_id,
    projectId: row.project_id ?? undefined,
    environmentId: row.environment_id ?? undefined,
    mode: row.mode ?? undefined,
    clusterId: row.cluster_id ?? undefined,
  });
}

const hidesAnythingIn = (principal: Principal, row: StreamRow): boolean =>
  hiddenPlaces(principal, row.organization_id).some((place) => place.projectId === row.project_id);
