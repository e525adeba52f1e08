import { forbidden } from '#kernel/errors.ts';
import { includes, LEVELS, type Level } from '#platform/access/actions.ts';
import {
  ENVIRONMENT_MODES,
  grantIn,
  levelAt,
  type Grant,
  type Location,
  type Principal,
  type RolePermissions,
} from '#platform/access/principal.ts';

/** Returns the highest level that a grant gives anywhere. */
export const highestLevelOf = (grant: Grant): Level => highestAt(grant, () => true);

/** Returns the highest level that a grant gives at the counted places. */
function highestAt(grant: Grant, counts: (at: Omit<Location, 'organizationId'>) => boolean): Level {
  const places = [grant, grant.within].flatMap((part) => placesOf(part?.custom ?? null)).filter(counts);
  const levels = places.map((at) => levelAt(grant, { organizationId: grant.organizationId, ...at }));
  return LEVELS[Math.max(...levels.map((level) => LEVELS.indexOf(level)))]!;
}

/** Returns the places that a custom role tells apart, and the organization itself. */
const placesOf = (custom: RolePermissions | null): Omit<Location, 'organizationId'>[] => [
  {},
  // One that the role doesn't name.
  { clusterId: '' },
  ...(custom?.clusters ?? []).map((entry) => ({ clusterId: entry.cluster_id })),
  ...(custom?.projects ?? []).flatMap((entry) =>
    ENVIRONMENT_MODES.map((mode) => ({ projectId: entry.project_id, mode })),
  ),
];

/** Throws 403 unless the caller has the level somewhere in the organization: for what belongs to no project yet. */
export function requireSomewhere(principal: Principal, organizationId: string, level: Level): void {
  const grant = grantIn(principal, organizationId);
  if (
    !grant ||
    !includes(
      highestAt(grant, (at) => at.clusterId === undefined),
      level,
    )
  )
    throw forbidden(`Your token or role does not allow this: it takes the permission ${level} in a project.`);
}

/**
 * Throws 403 unless the caller may hand the grant on to a member, a token or an invitation: callers grant at most what they hold
 * (docs/contributing/rules.md 23).
 */
export function requireGrantable(principal: Principal, grant: Grant): void {
  refuseConditions(principal);
  if (!mayGrant(principal, grant))
    throw forbidden(`You cannot give the permission ${highestLevelOf(grant)}: it is more than you have yourself.`);
}

/** Returns whether the principal holds at least the rights of the grant. */
export function mayGrant(principal: Principal, grant: Grant): boolean {
  const own = grantIn(principal, grant.organizationId);
  return own !== undefined && includes(levelAt(own, { organizationId: grant.organizationId }), highestLevelOf(grant));
}

/** Throws 403 for a token with a policy, or limited to a place: it could give away what that keeps from it. */
export function refuseConditions(principal: Principal): void {
  if (principal.grants.some((grant) => grant.policy))
    throw forbidden(
      'A token with a policy, or for one project or environment, cannot do this: use a session or another token.',
    );
}
