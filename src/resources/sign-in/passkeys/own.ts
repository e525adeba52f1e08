import { badRequest, conflict, notFound, unauthenticated } from '#kernel/errors.ts';
import type { Principal } from '#platform/access/principal.ts';
import { endSessions } from '#platform/access/sessions.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { passkeySite } from '#platform/settings/address.ts';
import { forgetInvitationSecretsOf } from '#resources/member/index.ts';
import { attempt, PASSKEY, type Visitor } from '#resources/sign-in/attempts.ts';
import { requireFreshSession, requireSession } from '#resources/sign-in/own-session.ts';
import { answerChallenge, makeChallenge, requireSite } from '#resources/sign-in/passkeys/challenge.ts';
import { madePasskey, refuseKnown, type CreatedCredential } from '#resources/sign-in/passkeys/made.ts';
import { creationOptions } from '#resources/sign-in/passkeys/options.ts';
import {
  deletePasskey,
  insertPasskey,
  listPasskeys,
  renamePasskey,
  type NewPasskey,
} from '#resources/sign-in/passkeys/queries.ts';
import { passwordOf } from '#resources/sign-in/passwords.ts';
import { findByUser, lockByUser, noteChange } from '#resources/sign-in/queries.ts';
import { tell } from '#resources/sign-in/tell.ts';

/** Passkeys that a person may have. */
const MOST = 20;

/** Lists the passkeys of the caller, and whether they have a password: nothing for a token, and for whoever signed in at an identity provider. */
export async function listOwnPasskeys(context: Context, principal: Principal) {
  if (principal.sessionId === undefined) return { has_password: false, results: [] };
  const { db, settings } = context;
  const rpId = passkeySite(settings)?.rpId;
  const rows = await listPasskeys(db, principal.userId);
  const hasPassword = passwordOf(await findByUser(db, principal.userId)) !== undefined;
  return { has_password: hasPassword, results: rows.map((row) => toPasskeyView(row, rpId)) };
}

type PasskeyRow = Awaited<ReturnType<typeof listPasskeys>>[number];

const toPasskeyView = (row: PasskeyRow, rpId: string | undefined) => ({
  id: row.id,
  name: row.name,
  created_at: row.created_at.toISOString(),
  last_used_at: row.last_used_at?.toISOString() ?? null,
  synced: row.synced,
  site: row.rp_id,
  usable: row.rp_id === rpId,
});

/** Makes the request for another passkey of the caller. Throws 403 outside a session that began here, at most 15 minutes ago. */
export async function beginAdding(context: Context, principal: Principal) {
  const site = requireSite(context);
  const sessionId = await requireFreshSession(context, principal);
  const { userId } = principal;
  const person = await findByUser(context.db, userId);
  if (!person) throw unauthenticated('The session is over: sign in again.');
  const present = await listPasskeys(context.db, userId);
  requireRoom(present);
  const { challenge, cookie } = makeChallenge(context, site, { purpose: 'add', userId, sessionId });
  return { options: creationOptions(site, { userId, name: person.name, challenge, present }), cookie };
}

/** Stores the passkey that the caller's browser has made. */
export async function addPasskey(
  context: Context,
  principal: Principal,
  input: { name: string; credential: CreatedCredential },
  cookies: unknown,
  visitor: Visitor,
) {
  const site = requireSite(context);
  const sessionId = await requireFreshSession(context, principal);
  const { userId } = principal;
  return attempt(context, visitor, PASSKEY, async (wrong) => {
    const made = await answerChallenge(context, site, cookies, 'add');
    if (made.sessionId !== sessionId)
      throw badRequest('The passkey was asked for in another session: begin again in this one.');
    const passkey = await madePasskey(site, made.challenge, input.credential, input.name).catch((error) => {
      throw wrong(error);
    });
    return refuseKnown(() => inTransaction(context, (inside) => store(inside, userId, passkey)));
  });
}

async function store(context: Context, userId: string, passkey: NewPasskey) {
  const { db } = context;
  if (!(await lockByUser(db, userId))) throw unauthenticated('The session is over: sign in again.');
  requireRoom(await listPasskeys(db, userId));
  await noteChange(db, userId);
  await insertPasskey(db, userId, passkey);
  await tell(context, userId, { passkey: 'added by themselves', passkey_name: passkey.name });
  const row = (await listPasskeys(db, userId)).find(({ id }) => id === passkey.id)!;
  return toPasskeyView(row, passkey.rp_id);
}

function requireRoom(present: unknown[]): void {
  if (present.length >= MOST) throw conflict(`You have ${MOST} passkeys, which is the most: remove one first.`);
}

/** Gives a passkey of the caller another name. Throws 403 outside a session that began here. */
export async function namePasskey(context: Context, principal: Principal, id: string, name: string) {
  const { db, settings } = context;
  const { userId } = principal;
  const before = (await listPasskeys(db, userId)).find((one) => one.id === id);
  if (!before) throw notFound('Passkey');
  requireSession(principal);
  if (!(await renamePasskey(db, userId, id, name))) throw notFound('Passkey');
  await noteChange(db, userId);
  await tell(context, userId, { passkey: 'renamed by themselves', passkey_name: name, former_name: before.name });
  return toPasskeyView({ ...before, name }, passkeySite(settings)?.rpId);
}

/**
 * Removes a passkey of the caller, and ends their other sessions, as one may be of a lost device. Throws 409 for the last means of signing in;
 * a passkey of an earlier address of the installation is none.
 */
export const removePasskey = (context: Context, principal: Principal, id: string): Promise<void> =>
  inTransaction(context, async (inside) => {
    const { db, settings } = inside;
    const { userId } = principal;
    const person = await lockByUser(db, userId);
    const all = await listPasskeys(db, userId);
    const found = all.find((one) => one.id === id);
    if (!found) throw notFound('Passkey');
    const sessionId = await requireFreshSession(inside, principal);
    const rpId = passkeySite(settings)?.rpId;
    const hasOther = all.some((one) => one.id !== id && one.rp_id === rpId);
    if (!passwordOf(person) && !hasOther)
      throw conflict('This is your last way to sign in: add another passkey, or set a password, before you remove it.');
    await noteChange(db, userId);
    await deletePasskey(db, userId, id);
    await endSessions(db, userId, sessionId);
    await forgetInvitationSecretsOf(db, userId);
    await tell(inside, userId, { passkey: 'removed by themselves', passkey_name: found.name });
  });
