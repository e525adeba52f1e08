import { forbidden, notFound, type AppError } from '#kernel/errors.ts';
import type { Action } from '#platform/access/actions.ts';
import { authenticate, recognize, type Caller, type Credentials } from '#platform/access/authenticate.ts';
import { hasLevel, permits, type Location, type Principal } from '#platform/access/principal.ts';
import { mayListBelow, withPlaces } from '#platform/access/visibility.ts';
import type { Database } from '#platform/database/index.ts';
import type { Route } from '#platform/http/route.ts';

const NOBODY: Caller = { principal: { id: '', kind: 'user', userId: '', name: 'nobody', grants: [] } };
const NOWHERE: Location = { organizationId: '' };

/** Part of a route, or of a socket, that says who may use it. */
export type Guarded = Pick<Route, 'target' | 'action' | 'filtersRows'>;

/**
 * The caller of a request. One who was here before is remembered where the target of the route says whether they still hold: then
 * nothing may come of the request before `load` has looked.
 */
export function callerOf(
  credentials: Credentials,
  route: Guarded,
  header: string | undefined,
): Caller | Promise<Caller> {
  if (route.action === 'public') return NOBODY;
  return route.target?.tellsAccess ? recognize(credentials, header) : authenticate(credentials, header);
}

/** Caller, their credentials and the addressed target. */
export interface Wanted {
  db: Database;
  caller: Caller;
  /** `Authorization` */
  header: string | undefined;
  params: Record<string, string>;
  writes: boolean;
}

/**
 * Loads the addressed target for the route's action. Throws 404 if the caller's organizations do not have it, 403 if their role forbids it,
 * and 401 for a remembered caller whose credentials have ended. Returns the caller as they are now.
 */
export async function load(
  credentials: Credentials,
  route: Guarded,
  { db, caller, header, params, writes }: Wanted,
): Promise<{ principal: Principal; target: Location }> {
  const { target, action } = route;
  if (!target) return { principal: caller.principal, target: NOWHERE };
  const find = ({ principal, accessVersion }: Caller) =>
    target.find(db, params[target.param]!, organizationsOf(principal, target.inAnyOrganization ? {} : params), {
      lock: writes,
      userId: accessVersion === undefined ? null : principal.userId,
    });
  let { principal } = caller;
  let found = await find(caller);
  if (caller.accessVersion !== undefined && found?.accessVersion !== caller.accessVersion) {
    const present = await authenticate(credentials, header, db);
    principal = present.principal;
    found = await find(present);
  }
  if (!found) throw notFound(target.name);
  if (route.filtersRows) principal = await withPlaces(db, principal, found.organizationId);
  if (action !== 'public' && action !== 'authenticated' && !isOpen(route, principal, action, found))
    throw forbiddenTo(action);
  return { principal, target: found };
}

/** Returns whether the action is allowed at the place. If the rows of an answer are filtered, a policy is asked about each row instead. */
const isOpen = (route: Guarded, principal: Principal, action: Action, at: Location): boolean =>
  permits(principal, action, at) ||
  (route.filtersRows === true && hasLevel(principal, action, at) && mayListBelow(principal, action, at));

/** Returns the organizations that a search covers: the one that the path names, else all of the caller's. */
const organizationsOf = (principal: Principal, { organizationId }: { organizationId?: string }): string[] =>
  principal.grants
    .map((grant) => grant.organizationId)
    .filter((id) => organizationId === undefined || organizationId === id);

export const forbiddenTo = (action: Action): AppError =>
  forbidden(`Your token or role does not allow this: it takes the permission ${action}.`);

/**
 * Organization for which a request counts: the one that it names, else the only one of the caller. Undefined for a caller with several:
 * what they do in one must not use up what another one has.
 */
export function ownerOf({ grants }: Principal, organizationId: string | undefined): string | undefined {
  if (grants.some((grant) => grant.organizationId === organizationId)) return organizationId;
  return grants.length === 1 ? grants[0]!.organizationId : undefined;
}
