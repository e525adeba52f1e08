import { LEVELS } from '#platform/access/actions.ts';
import { highestLevelOf } from '#platform/access/granting.ts';
import type { OnSignIn, ReadGroups } from '#platform/access/oidc.ts';
import { grantOfRole, type StoredRole } from '#platform/access/roles.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { readInstallation } from '#platform/installation/index.ts';
import * as queries from '#resources/enterprise-connection/queries.ts';
import { readsGroups } from '#resources/enterprise-connection/service.ts';
import { isOwner, placeMember } from '#resources/member/index.ts';

/**
 * Creates what gives people the roles of their groups. It looks with every request of a session of the identity provider, and applies each token
 * once (docs/decisions/0099-groups-of-the-provider-give-roles.md).
 */
export const createGroupSync =
  (platform: Platform): OnSignIn =>
  async (signIn) => {
    const due = await queries.listDue(platform.db, signIn.userId, signIn.tokenAt);
    // People sign in while the installation is read-only: their roles stay as they are.
    if (due.length === 0 || (await readInstallation(platform.db)).readOnlySince !== null) return false;
    for (const organizationId of due)
      if (await readsGroups(platform, organizationId))
        await inTransaction(systemContext(platform), (inside) => sync(inside, organizationId, signIn));
    return true;
  };

/** Applies the groups of a token in one organization. */
async function sync(context: Context, organizationId: string, { userId, groups, tokenAt }: ReadGroups): Promise<void> {
  const { db } = context;
  const scope = { organizationId };
  const connection = await queries.findConnection(db, scope, true);
  // Another request was faster, or the connection is gone.
  if (!connection || !(await queries.listDue(db, userId, tokenAt)).includes(organizationId)) return;
  const earlier = await queries.findSignIn(db, scope, userId);
  const roleId = await chooseRole(context, connection, groups);
  const acting = { ...context, actor: { ...context.actor, name: `enterprise connection ${connection.name}` } };
  const { enforce_group_sync: enforces, updated_at: connection_at } = connection;
  const placed = await placeMember(acting, organizationId, userId, {
    roleId,
    replaces: enforces,
    removes: enforces && earlier?.gave_membership === true,
  });
  if (placed === 'last owner')
    context.log.warn(
      { organizationId, userId },
      'the groups of the last owner give another role: they stay the owner, as nobody else could administer the organization',
    );
  const gave_membership = placed === 'joined' || (placed !== 'removed' && earlier?.gave_membership === true);
  await queries.saveSignIn(db, {
    organization_id: organizationId,
    user_id: userId,
    token_at: tokenAt,
    connection_at,
    gave_membership,
  });
}

/** Chooses the highest role that the groups give, or else the default role. */
async function chooseRole(
  { db }: Context,
  { organization_id: organizationId, default_role_id }: queries.ConnectionRow,
  groups: readonly string[],
): Promise<string | null> {
  const names = new Set(groups);
  const given = (await queries.listGroups(db, { organizationId })).filter(({ group_name }) => names.has(group_name));
  return given.sort(byLevel(organizationId))[0]?.id ?? default_role_id;
}

/** Orders roles from high to low: owners first, then by their highest level, then by name. */
const byLevel =
  (organizationId: string) =>
  (one: StoredRole, other: StoredRole): number =>
    rankOf(organizationId, other) - rankOf(organizationId, one) || one.name.localeCompare(other.name);

const rankOf = (organizationId: string, role: StoredRole): number =>
  isOwner({ ...role, role_name: role.name })
    ? LEVELS.length
    : LEVELS.indexOf(highestLevelOf(grantOfRole(organizationId, role)));
