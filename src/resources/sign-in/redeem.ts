import { conflict, invalidField, type AppError } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { endSessions } from '#platform/access/sessions.ts';
import type { Context } from '#platform/context.ts';
import { inTransaction } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { isUuid } from '#platform/settings/organization-rules.ts';
import {
  acceptBySecret,
  findInvitationBySecret,
  forgetInvitationSecretsOf,
  toInvitationView,
} from '#resources/member/index.ts';
import { findAddressBySecret } from '#resources/sign-in/address/confirm.ts';
import { attempt, type Visitor, type Wrong } from '#resources/sign-in/attempts.ts';
import { begin, requirePasswords } from '#resources/sign-in/begin.ts';
import { findLink, notFoundLink } from '#resources/sign-in/links.ts';
import { insertPasskey, type NewPasskey } from '#resources/sign-in/passkeys/queries.ts';
import { hashPassword, requireGoodPassword, type StoredPassword } from '#resources/sign-in/passwords.ts';
import * as queries from '#resources/sign-in/queries.ts';
import { actingAs, tell } from '#resources/sign-in/tell.ts';

/** Returns what the secret of a link is for. 404 if it is not valid. Changes nothing: programs that look at links do not use them up. */
export async function lookAtLink(context: Context, secret: string, visitor: Visitor) {
  requirePasswords(context);
  return attempt(
    context,
    visitor,
    null,
    async (wrong) => (await viewOfAddress(context, secret)) ?? requireLink(context, secret, wrong),
  );
}

/** Returns what a link to sign in is for. Throws 404, as a wrong guess, if it is not valid. */
export async function requireLink(context: Context, secret: string, wrong: Wrong) {
  const view = (await viewOfInvitation(context, secret)) ?? (await viewOfLink(context, secret));
  if (!view) throw wrong(notFoundLink());
  return view;
}

async function viewOfAddress(context: Context, secret: string) {
  const link = await findAddressBySecret(context, secret);
  if (!link) return undefined;
  const { name, email, expires_at } = link;
  return { purpose: 'ADDRESS' as const, name, email, expires_at: expires_at.toISOString() };
}

async function viewOfInvitation(context: Context, secret: string) {
  const found = await findInvitationBySecret(context, secret);
  if (!found || found.row.expires_at <= context.clock.now()) return undefined;
  const { email, organization_name, role_name, inviter, expires_at } = toInvitationView(context, found.row);
  const shown = { email, organization_name, role_name, inviter, expires_at };
  return { purpose: 'INVITATION' as const, name: null, ...shown, ...(found.isMailed ? { mailed: true } : {}) };
}

async function viewOfLink(context: Context, secret: string) {
  const link = await findLink(context, secret);
  if (!link) return undefined;
  const present = await queries.findByUser(context.db, link.user_id);
  return { purpose: 'PASSWORD' as const, name: present?.name ?? null, expires_at: link.expires_at.toISOString() };
}

/** Returns the name to sign in with that a person has chosen by a link, or has already. Throws 400 if there is none, or for a UUID. */
export function chosenName(given: string | undefined, present: string | null): string {
  const name = given ?? present;
  if (name === null) throw invalidField('name', 'is required: choose the name to sign in with');
  // The command line finds people by id too.
  if (isUuid(name)) throw invalidField('name', 'must not be a UUID');
  return name;
}

export interface RedeemInput {
  secret: string;
  name?: string;
  password: string;
  first_name?: string;
  last_name?: string;
}

/** Uses a link with a password (`useLink`). */
export async function redeemLink(context: Context, input: RedeemInput, visitor: Visitor) {
  requirePasswords(context);
  return attempt(context, visitor, null, async (wrong) => {
    const view = await requireLink(context, input.secret, wrong);
    const name = chosenName(input.name, view.name);
    const own = [name, name.split('@')[0]!, input.first_name, input.last_name, 'email' in view ? view.email : ''];
    requireGoodPassword(
      input.password,
      own.filter((one) => one !== undefined),
    );
    const password = await hashPassword(input.password);
    return useLink(context, view.purpose, { ...input, name }, { password }, visitor);
  });
}

interface Given {
  secret: string;
  name: string;
  first_name?: string;
  last_name?: string;
}

/** Password or passkey that a person has chosen. A passkey was made for the id that their account has, or gets. */
type Means = { password: StoredPassword } | { passkey: NewPasskey; userId: string };

/**
 * Uses a link: the person of an invitation gets an account and becomes a member; the person of a one-time link gets another password, or a
 * passkey in place of one, which ends their sessions. Both are signed in. 404 if the link is not valid, 409 if the name is taken; the link
 * stays usable then.
 */
export const useLink = (
  context: Context,
  purpose: 'INVITATION' | 'PASSWORD',
  given: Given,
  means: Means,
  visitor: Visitor,
) =>
  inTransaction(context, (inside) =>
    purpose === 'INVITATION'
      ? joinByInvitation(inside, given, means, visitor)
      : setByLink(inside, given, means, visitor),
  );

/**
 * Makes the account of an invited person. The link that was mailed has proved that they read mail at the invited address: links for a
 * forgotten password go there. It is no verified address in any other way, and opens no invitation.
 */
async function joinByInvitation(context: Context, input: Given, means: Means, visitor: Visitor) {
  const id = 'passkey' in means ? means.userId : newId();
  const { name } = input;
  const person = { id, nickname: name, first_name: input.first_name ?? '', last_name: input.last_name ?? '' };
  await queries.insertPerson(context.db, person);
  await saveMeans(context, id, name, means);
  const found = await findInvitationBySecret(context, input.secret);
  if (found?.isMailed) await queries.saveEmail(context.db, id, found.row.email);
  const acting = await actingAs(context, id, visitor);
  await acceptBySecret(acting, { id, kind: 'user', userId: id, name: acting.actor.name, grants: [] }, input.secret);
  return begin(context, id, name, visitor);
}

async function setByLink(context: Context, input: Given, means: Means, visitor: Visitor) {
  const link = await findLink(context, input.secret, true);
  // A passkey names its person: it was asked for with this link, which is the same person's until its end.
  if (!link || ('passkey' in means && means.userId !== link.user_id)) throw notFoundLink();
  const { user_id: userId } = link;
  await saveMeans(context, userId, input.name, means);
  await queries.namePerson(context.db, userId, input.first_name ?? '', input.last_name ?? '');
  await queries.deleteLinksOf(context.db, userId);
  await endSessions(context.db, userId, null);
  await forgetInvitationSecretsOf(context.db, userId);
  const acting = await actingAs(context, userId, visitor);
  const how = 'set by a one-time link';
  await tell(acting, userId, {
    ...('passkey' in means ? { passkey: how, passkey_name: means.passkey.name } : { password: how }),
    sign_in_name: input.name,
  });
  return begin(context, userId, input.name, visitor);
}

async function saveMeans({ db }: Context, userId: string, name: string, means: Means): Promise<void> {
  const password = 'password' in means ? means.password : null;
  await refuseTakenName(name, () => queries.saveSignIn(db, userId, name, password));
  if ('passkey' in means) await insertPasskey(db, userId, means.passkey);
}

async function refuseTakenName(name: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (brokenConstraint(error) === 'sign_in_name') throw takenName(name);
    throw error;
  }
}

export const takenName = (name: string): AppError =>
  conflict(`The name "${name}" is taken: choose another, or sign in if it is yours.`);
