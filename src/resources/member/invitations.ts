import { conflict, forbidden, internal, invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { mayGrant, requireGrantable } from '#platform/access/granting.ts';
import { findMakerPrincipal } from '#platform/access/makers.ts';
import { displayName } from '#platform/access/people.ts';
import { grantIn, permits, type Principal, type RolePermissions } from '#platform/access/principal.ts';
import { grantOfRole } from '#platform/access/roles.ts';
import { deriveSecretText, isSecret, makeSecretText, parseSecretText } from '#platform/access/secret-text.ts';
import type { Context } from '#platform/context.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { addressOfApi, signInPage } from '#platform/settings/address.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { enqueueMail, sendsMail, type MailWriter } from '#platform/mail-queue/index.ts';
import { invitationMail } from '#resources/member/invitation-mail.ts';
import { isOwner, mayMakeOwners, requireOwner } from '#resources/member/owner.ts';
import * as queries from '#resources/member/queries.ts';
import { roleNameOf } from '#resources/member/role-names.ts';
import { findBuiltInRole, requireRole } from '#resources/role/index.ts';

/** Kind of the mail that invites. */
export const INVITATION_MAIL = 'INVITATION';

const VALID_DAYS = 7;
const DAY_MS = 24 * 3600 * 1000;

/** The built-in roles under the reference's names. */
const BUILT_IN_ROLE: Record<string, string> = { OWNER: 'owner', ADMIN: 'admin', DEVELOPER: 'devops', VIEWER: 'viewer' };

/**
 * Prefix of the secret in the link of an invitation. Who holds it may join: the link is shown to the inviter once, who gives nothing by it
 * that they do not hold themselves.
 */
const PREFIX = 'qi';
/** Prefix of the secret in the link that is mailed. The inviter never sees it: whoever has it reads mail at the invited address. */
const MAILED_PREFIX = 'qm';

/** An invitation as it is answered. Its link holds no secret: only the person with that verified address can follow it. */
export const toInvitationView = (context: Context, row: queries.InvitationRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  email: row.email,
  role: roleNameOf(row),
  role_id: row.role_id,
  role_name: row.role_name,
  invitation_link: linkOf(context, row),
  invitation_status: row.expires_at > context.clock.now() ? 'PENDING' : 'EXPIRED',
  organization_name: row.organization_name,
  inviter: displayName({ ...row, email: row.inviter_email }),
  logo_url: row.logo_url ?? undefined,
  expires_at: row.expires_at.toISOString(),
});

const linkOf = ({ settings }: Context, row: queries.InvitationRow): string =>
  `${addressOfApi(settings)}/accept-invitation?organization=${row.organization_id}&inviteToken=${row.id}`;

/**
 * Returns how an invitation is accepted, for the person who follows its link. The text is the same for every id, so that it does not reveal
 * which invitations exist.
 */
export function guideOf({ settings }: Pick<Context, 'settings'>, ids: { organization?: string; inviteToken?: string }) {
  const { organization = '{organizationId}', inviteToken = '{inviteId}' } = ids;
  const acceptWith = `POST /organization/${organization}/inviteMember/${inviteToken}`;
  const ways = [
    ...(settings.oidcIssuer
      ? [
          `Sign in at ${settings.oidcIssuer} with the address that was invited, verified there. Then accept in a console of this installation, or send ${acceptWith} with the token of the session.`,
        ]
      : []),
    ...(takesPasswords(settings)
      ? [
          `Open the link that the inviter was given when they invited you, with everything behind its #: there you choose a name and a password. This link lacks that part. Whoever invited you withdraws the invitation and sends another, in a session of their own: an invitation that an API token sends has no such link.`,
        ]
      : []),
  ];
  const none = `Nobody can sign in at this installation yet: its operator sets QUARTERDECK_PASSWORDS=true, or QUARTERDECK_OIDC_ISSUER and QUARTERDECK_OIDC_AUDIENCE. Then sign in with the address that was invited and send ${acceptWith}. Until then an administrator can give you an API token with the role that you were invited to: POST /organization/${organization}/apiToken with name and role_id, or quarterdeck token create with a scope on the machine. Such a token acts for whoever made it, not for you: events name them, it never does more than they may, and it ends when they leave. A token that acts as an invited person does not exist.`;
  const message = ways.join(' Or else: ') || none;
  return { message, sign_in_at: settings.oidcIssuer || null, accept_with: acceptWith };
}

/**
 * Invites the person with an e-mail address; who proves it at the identity provider may join within 7 days. 409 if they are
 * invited or a member already.
 */
export async function invite(
  context: Context,
  principal: Principal,
  organizationId: string,
  input: { email: string; role?: string; role_id?: string },
) {
  const scope = { organizationId };
  const email = input.email.trim();
  const role = await roleOf(context, organizationId, input);
  requireGrantable(
    principal,
    grantOfRole(organizationId, { ...role, permissions: role.permissions as RolePermissions }),
  );
  if (isOwner({ ...role, role_name: role.name })) await requireOwner(context, principal, organizationId);
  if (await queries.findMemberByEmail(context.db, scope, email))
    throw conflict(`${email} is a member of the organization already.`);
  const now = context.clock.now();
  await queries.deleteExpiredInvitation(context.db, scope, email, now);
  const id = newId();
  // A token ends, or is revoked, with everything made by it: it lets in nobody who proves no address.
  const mayLetIn = principal.kind === 'user' && takesPasswords(context.settings);
  const secret = mayLetIn ? makeSecretText(PREFIX, id) : undefined;
  const isMailed = sendsMail(context.settings) && (mayLetIn || context.settings.oidcIssuer !== '');
  const mailSecret = isMailed && mayLetIn ? deriveSecretText(context.vault, MAILED_PREFIX, id) : undefined;
  await refuseTwice(email, () =>
    queries.insertInvitation(context.db, {
      id,
      secret_hash: secret?.hash ?? null,
      mail_secret_hash: mailSecret?.hash ?? null,
      organization_id: organizationId,
      email,
      role_id: role.id,
      invited_by: principal.userId,
      invited_with: principal.kind === 'token' ? principal.id : null,
      expires_at: new Date(now.getTime() + VALID_DAYS * DAY_MS),
    }),
  );
  const row = await queries.findInvitation(context.db, scope, id);
  if (!row) throw internal(`Invitation ${id} is gone within its own transaction.`);
  const view = toInvitationView(context, row);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(row), after: view });
  if (isMailed) await enqueueMail(context, INVITATION_MAIL, { subjectId: id, recipient: email }, organizationId);
  return secret ? { ...view, invitation_link: signInPage(context.settings, secret.text) } : view;
}

/** Writes the mail of an invitation; null where it was withdrawn, accepted or has ended meanwhile. */
export const writeInvitation: MailWriter = async (context, { subjectId }) => {
  const row = subjectId === null ? undefined : await queries.findInvitationById(context.db, subjectId);
  if (!row || row.expires_at <= context.clock.now()) return null;
  const secret = row.mail_secret_hash && deriveSecretText(context.vault, MAILED_PREFIX, row.id);
  const link = secret ? signInPage(context.settings, secret.text) : undefined;
  // It has the secret no more once its sender was signed out, and is for people of the identity provider then.
  if (!link && !context.settings.oidcIssuer) return null;
  return invitationMail(toInvitationView(context, row), { link, issuer: context.settings.oidcIssuer });
};

/** Returns an invitation for members who may see it and for the invited person; 404 for all others. */
export async function getInvitation(context: Context, principal: Principal, organizationId: string, id: string) {
  return toInvitationView(context, await requireVisible(context, principal, organizationId, id));
}

async function requireVisible(context: Context, principal: Principal, organizationId: string, id: string) {
  const row = await queries.findInvitation(context.db, { organizationId }, id);
  if (!row || !(permits(principal, 'member.read', { organizationId }) || (await isFor(context, principal, row))))
    throw notFound('Invitation');
  return row;
}

/** Makes the invited person a member. Only they can do this, in a session of their own (docs/contributing/rules.md 25). */
export async function accept(context: Context, principal: Principal, organizationId: string, id: string) {
  await queries.lockInvitation(context.db, { organizationId }, id);
  const row = await requireVisible(context, principal, organizationId, id);
  if (principal.kind !== 'user' || !(await isFor(context, principal, row)))
    throw forbidden(`This invitation is for ${row.email}: they accept it in a session with that verified address.`);
  return join(context, principal, row);
}

/** Invitation that a link was found for. */
export interface LinkedInvitation {
  row: queries.InvitationRow;
  /** True for the link that was mailed: whoever has it reads mail at the invited address. */
  isMailed: boolean;
}

/** Returns the invitation whose link holds the secret; undefined for any other text, and where nobody signs in with a password. */
export async function findInvitationBySecret(context: Context, text: string): Promise<LinkedInvitation | undefined> {
  const mailed = parseSecretText(MAILED_PREFIX, text);
  const parts = mailed ?? parseSecretText(PREFIX, text);
  if (!parts || !takesPasswords(context.settings)) return undefined;
  const row = await queries.findInvitationById(context.db, parts.id);
  const stored = mailed ? row?.mail_secret_hash : row?.secret_hash;
  return row && stored && isSecret(stored, parts.secret) ? { row, isMailed: mailed !== undefined } : undefined;
}

/** Makes the person a member whom the secret of a link lets in. In one transaction. Throws 404 if the invitation is gone. */
export async function acceptBySecret(context: Context, principal: Principal, text: string) {
  const found = (await findInvitationBySecret(context, text))?.row;
  const scope = found && { organizationId: found.organization_id };
  // Whoever was faster, or has withdrawn it, is waited for.
  const row =
    scope && (await queries.lockInvitation(context.db, scope, found.id))
      ? await queries.findInvitation(context.db, scope, found.id)
      : undefined;
  if (!row) throw notFound('Invitation');
  return join(context, principal, row);
}

/** Makes the person a member and removes the invitation, whose row is locked. */
async function join(context: Context, principal: Principal, row: queries.InvitationRow) {
  const organizationId = row.organization_id;
  const scope = { organizationId };
  const before = toInvitationView(context, row);
  if (before.invitation_status === 'EXPIRED')
    throw conflict(`The invitation ended at ${before.expires_at}: ask ${before.inviter} for another.`);
  if (grantIn(principal, organizationId)) throw conflict('You are a member of this organization already.');
  await refuseWithdrawn(context, row);
  await refuseTwice(row.email, () => queries.insertMember(context.db, scope, principal.userId, row.role_id));
  await queries.deleteInvitationRow(context.db, scope, row.id);
  const after = { user_id: principal.userId, role_id: row.role_id };
  await audit(context, { organizationId, type: 'ACCEPT', target: targetOf(row), before, after });
  return before;
}

/** Throws 403 if the sender, or the token that they used, may no longer grant the role: this is checked again at the acceptance. */
async function refuseWithdrawn(context: Context, row: queries.InvitationRow): Promise<void> {
  const scope = { organizationId: row.organization_id };
  const sender = await findMakerPrincipal(context, scope, { userId: row.invited_by, tokenId: row.invited_with });
  const role = await requireRole(context, scope.organizationId, row.role_id);
  const grant = grantOfRole(scope.organizationId, { ...role, permissions: role.permissions as RolePermissions });
  const holds =
    sender !== undefined &&
    mayGrant(sender, grant) &&
    permits(sender, 'member.edit', scope) &&
    (!isOwner({ ...role, role_name: role.name }) || (await mayMakeOwners(context, sender, scope.organizationId)));
  if (!holds)
    throw forbidden(
      `Whoever sent this invitation, or the token that they used, may no longer give the role ${role.name}: ask an administrator of ${row.organization_name} for another invitation.`,
    );
}

/** Revokes an invitation. */
export async function withdraw(context: Context, row: queries.InvitationRow): Promise<void> {
  const organizationId = row.organization_id;
  await queries.deleteInvitationRow(context.db, { organizationId }, row.id);
  const before = toInvitationView(context, row);
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(row), before });
}

/** Revokes the invitations that a person who leaves the organization sent in its name. */
export async function withdrawInvitationsOf(context: Context, organizationId: string, userId: string): Promise<void> {
  for (const row of await queries.listInvitationsBy(context.db, { organizationId }, userId))
    await withdraw(context, row);
}

async function isFor(context: Context, principal: Principal, row: queries.InvitationRow): Promise<boolean> {
  const email = await queries.findVerifiedEmail(context.db, principal.userId);
  return email !== undefined && email.toLowerCase() === row.email.toLowerCase();
}

async function roleOf(context: Context, organizationId: string, input: { role?: string; role_id?: string }) {
  const named = input.role && (await findBuiltInRole(context.db, { organizationId }, BUILT_IN_ROLE[input.role]!));
  if (!input.role_id) return named || findBuiltInRole(context.db, { organizationId }, BUILT_IN_ROLE.VIEWER!);
  const role = await requireRole(context, organizationId, input.role_id);
  if (named && roleNameOf({ built_in: role.built_in, role_name: role.name }) !== input.role)
    throw invalidField('role', `says something else than the role ${role.name}: give one of the two`);
  return role;
}

const targetOf = (row: queries.InvitationRow) => ({
  type: 'MEMBERS_AND_ROLES' as const,
  id: row.id,
  name: row.email,
  sub: 'INVITATION' as const,
});

async function refuseTwice(email: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    const broken = brokenConstraint(error);
    if (broken === 'member_invitation_email') throw conflict(`${email} is invited already.`);
    if (broken === 'member_pkey') throw conflict('You are a member of this organization already.');
    throw error;
  }
}
