import { AppError, conflict, forbidden, invalidField, notFound, unauthenticated } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { isUuid } from '#platform/settings/organization-rules.ts';
import { actorOf } from '#platform/access/authenticate.ts';
import type { Principal } from '#platform/access/principal.ts';
import { beginSession, endSession, endSessions, listSessions } from '#platform/access/sessions.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import {
  acceptBySecret,
  findInvitationBySecret,
  forgetInvitationSecretsOf,
  toInvitationView,
} from '#resources/member/index.ts';
import { attempt, type Visitor, type Wrong } from '#resources/sign-in/attempts.ts';
import { tell } from '#resources/sign-in/tell.ts';
import { findLink } from '#resources/sign-in/links.ts';
import { hashPassword, isPassword, requireGoodPassword, type StoredPassword } from '#resources/sign-in/passwords.ts';
import * as queries from '#resources/sign-in/queries.ts';

const LINK_IS_OVER =
  'The link is not valid: it was used already, was replaced by another, or is too old. Ask for a new one.';

/** Throws 403 where the installation takes no passwords. */
function requirePasswords({ settings }: Context): void {
  if (!takesPasswords(settings))
    throw forbidden('This installation takes no passwords (QUARTERDECK_PASSWORDS): sign in at its identity provider.');
}

/** Signs a person in. A wrong name is refused with 401 like a wrong password; after too many of them the refusal is 429. */
export async function signIn(context: Context, input: { name: string; password: string }, visitor: Visitor) {
  requirePasswords(context);
  return attempt(context, visitor, input.name, async (wrong) => {
    const refusal = unauthenticated('The name or the password is wrong.');
    const found = await queries.findByName(context.db, input.name);
    if (!(await isPassword(found, input.password)) || !found) throw wrong(refusal);
    return inTransaction(context, async (inside) => {
      // Another password since then ends sessions, of which this would be one.
      const present = await queries.lockByUser(inside.db, found.user_id);
      if (!present?.password_hash.equals(found.password_hash)) throw wrong(refusal);
      return begin(inside, found.user_id, present.name, visitor);
    });
  });
}

/** Returns what the secret of a link is for. 404 if it is not valid. Changes nothing: programs that look at links do not use them up. */
export async function lookAtLink(context: Context, secret: string, visitor: Visitor) {
  requirePasswords(context);
  return attempt(context, visitor, null, (wrong) => requireLink(context, secret, wrong));
}

async function requireLink(context: Context, secret: string, wrong: Wrong) {
  const view = (await viewOfInvitation(context, secret)) ?? (await viewOfLink(context, secret));
  if (!view) throw wrong(notFoundLink());
  return view;
}

async function viewOfInvitation(context: Context, secret: string) {
  const row = await findInvitationBySecret(context, secret);
  if (!row || row.expires_at <= context.clock.now()) return undefined;
  const { email, organization_name, role_name, inviter, expires_at } = toInvitationView(context, row);
  return { purpose: 'INVITATION' as const, name: null, email, organization_name, role_name, inviter, expires_at };
}

async function viewOfLink(context: Context, secret: string) {
  const link = await findLink(context, secret);
  if (!link) return undefined;
  const present = await queries.findByUser(context.db, link.user_id);
  return { purpose: 'PASSWORD' as const, name: present?.name ?? null, expires_at: link.expires_at.toISOString() };
}

export interface RedeemInput {
  secret: string;
  name?: string;
  password: string;
  first_name?: string;
  last_name?: string;
}

/**
 * Uses a link: the person of an invitation gets an account and becomes a member, the person of a one-time link gets another password, which
 * ends their sessions. Both are signed in. 404 if the link is not valid, 409 if the name is taken; the link stays usable then.
 */
export async function redeemLink(context: Context, input: RedeemInput, visitor: Visitor) {
  requirePasswords(context);
  return attempt(context, visitor, null, async (wrong) => {
    const view = await requireLink(context, input.secret, wrong);
    const name = input.name ?? view.name;
    if (name === null) throw invalidField('name', 'is required: choose the name to sign in with');
    // The command line finds people by id too.
    if (isUuid(name)) throw invalidField('name', 'must not be a UUID');
    const own = [name, name.split('@')[0]!, input.first_name, input.last_name, 'email' in view ? view.email : ''];
    requireGoodPassword(
      input.password,
      own.filter((one) => one !== undefined),
    );
    const password = await hashPassword(input.password);
    const given = { ...input, name };
    return inTransaction(context, (inside) =>
      view.purpose === 'INVITATION'
        ? joinByInvitation(inside, given, password, visitor)
        : setByLink(inside, given, password, visitor),
    );
  });
}

type Given = RedeemInput & { name: string };

/** Makes the account of an invited person, who has proved nothing but the link: no address becomes theirs. */
async function joinByInvitation(context: Context, input: Given, password: StoredPassword, visitor: Visitor) {
  const id = newId();
  const { name } = input;
  const person = { id, nickname: name, first_name: input.first_name ?? '', last_name: input.last_name ?? '' };
  await queries.insertPerson(context.db, person);
  await refuseTakenName(name, () => queries.saveSignIn(context.db, id, name, password));
  const acting = await actingAs(context, id, visitor);
  await acceptBySecret(acting, { id, kind: 'user', userId: id, name: acting.actor.name, grants: [] }, input.secret);
  return begin(context, id, name, visitor);
}

/** Returns the context in which a person acts who was not known when the request came. */
async function actingAs(context: Context, userId: string, { userAgent }: Visitor): Promise<Context> {
  const name = await queries.nameOf(context.db, userId);
  const principal: Principal = { id: userId, kind: 'user', userId, name, grants: [] };
  return { ...context, actor: actorOf(principal, userAgent ?? undefined) };
}

async function setByLink(context: Context, input: Given, password: StoredPassword, visitor: Visitor) {
  const link = await findLink(context, input.secret, true);
  if (!link) throw notFoundLink();
  const { user_id: userId } = link;
  await refuseTakenName(input.name, () => queries.saveSignIn(context.db, userId, input.name, password));
  await queries.namePerson(context.db, userId, input.first_name ?? '', input.last_name ?? '');
  await queries.deleteLinkOf(context.db, userId);
  await endSessions(context.db, userId, null);
  await forgetInvitationSecretsOf(context.db, userId);
  const acting = await actingAs(context, userId, visitor);
  await tell(acting, userId, { password: 'set by a one-time link', sign_in_name: input.name });
  return begin(context, userId, input.name, visitor);
}

/** Sets another password, and ends the other sessions. Throws 403 outside a session that began with a password. */
export async function changePassword(
  context: Context,
  principal: Principal,
  input: { current_password: string; password: string },
  visitor: Visitor,
): Promise<void> {
  const sessionId = requireSession(principal);
  const found = await queries.findByUser(context.db, principal.userId);
  if (!found) throw unauthenticated('The session is over: sign in again.');
  requireGoodPassword(input.password, [found.name, found.name.split('@')[0]!, ...principal.name.split(' ')]);
  await attempt(context, visitor, found.name, async (wrong) => {
    if (!(await isPassword(found, input.current_password)))
      throw wrong(invalidField('current_password', 'is not your present password'));
    const password = await hashPassword(input.password);
    await inTransaction(context, async (inside) => {
      const present = await queries.lockByUser(inside.db, principal.userId);
      if (!present?.password_hash.equals(found.password_hash))
        throw conflict('The password was changed meanwhile: sign in with the new one.');
      await queries.updatePassword(inside.db, principal.userId, password);
      await queries.deleteLinkOf(inside.db, principal.userId);
      await endSessions(inside.db, principal.userId, sessionId);
      await forgetInvitationSecretsOf(inside.db, principal.userId);
      await tell(inside, principal.userId, { password: 'changed by themselves' });
    });
  });
}

/** Lists the sessions of the caller, the newest first: none for a token, and for whoever signed in at an identity provider. */
export async function listOwnSessions({ db, clock }: Context, principal: Principal) {
  if (principal.sessionId === undefined) return { results: [] };
  const rows = await listSessions(db, principal.userId, clock.now()).execute();
  const results = rows.map((row) => ({
    id: row.id,
    created_at: row.created_at.toISOString(),
    last_used_at: row.last_used_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    user_agent: row.user_agent ?? '',
    address: row.address ?? '',
    current: row.id === principal.sessionId,
  }));
  return { results };
}

/** Ends a session of the caller, which may be the present one. A token has none. */
export async function endOwnSession({ db }: Context, principal: Principal, id: string): Promise<void> {
  if (principal.sessionId === undefined || !(await endSession(db, principal.userId, id))) throw notFound('Session');
}

/** Makes the caller a member by the link of an invitation: for who has an account already, here or at an identity provider. */
export async function acceptInvitation(context: Context, principal: Principal, secret: string) {
  if (principal.kind !== 'user')
    throw forbidden('A token accepts no invitation: sign in, so that it is you who becomes a member.');
  return acceptBySecret(context, principal, secret);
}

function requireSession({ sessionId }: Principal): string {
  if (sessionId === undefined)
    throw forbidden(
      'This requires a session that began with a password here: tokens and identity providers have none.',
    );
  return sessionId;
}

async function begin(context: Context, userId: string, name: string, visitor: Visitor) {
  const device = { userAgent: visitor.userAgent, address: visitor.address ?? null };
  const { id, token, expiresAt } = await beginSession(context, userId, device);
  return { token, session_id: id, user_id: userId, name, expires_at: expiresAt.toISOString() };
}

const notFoundLink = () => new AppError('not_found', LINK_IS_OVER);

async function refuseTakenName(name: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (brokenConstraint(error) === 'sign_in_name')
      throw conflict(`The name "${name}" is taken: choose another, or sign in if it is yours.`);
    throw error;
  }
}
