import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { visitorOf } from '#resources/sign-in/attempts.ts';
import { beginByLink, redeemByPasskey } from '#resources/sign-in/passkeys/by-link.ts';
import {
  addPasskey,
  beginAdding,
  listOwnPasskeys,
  namePasskey,
  removePasskey,
} from '#resources/sign-in/passkeys/own.ts';
import * as schema from '#resources/sign-in/passkeys/schema.ts';
import { beginSignIn, signInWithPasskey } from '#resources/sign-in/passkeys/sign-in.ts';
import { SignedIn } from '#resources/sign-in/schema.ts';

const TAG = 'Sign In';
const COOKIE =
  'Sets a cookie by which only this browser can answer, once, within 5 minutes. 403 where browsers make no passkeys: at an IP address, and over HTTP except on localhost (QUARTERDECK_BASE_URL).';

/** Sends a request for a passkey, and the cookie that binds it to its browser. */
function asked<T>(call: Pick<Call, 'answerHeader'>, { options, cookie }: { options: T; cookie: string }): T {
  call.answerHeader('set-cookie', cookie);
  return options;
}

export const passkeyRoutes: Route[] = [
  defineRoute({
    id: 'beginPasskeySignIn',
    method: 'POST',
    path: '/signIn/passkey/options',
    tag: TAG,
    summary: 'Ask to sign in with a passkey',
    description: `Answers the same for every visitor, and names no passkey: the browser offers those that it has. ${COOKIE}`,
    action: 'public',
    answer: { status: 200, body: schema.PasskeyRequestOptions },
    errors: [403],
    transaction: false,
    handler: (call) => asked(call, beginSignIn(call)),
  }),
  defineRoute({
    id: 'signInWithPasskey',
    method: 'POST',
    path: '/signIn/passkey',
    tag: TAG,
    summary: 'Sign in with a passkey',
    description:
      'Begins a session. Whatever is wrong with the passkey, the refusal is the same; after too many of them the answer is 429 with the seconds to wait.',
    action: 'public',
    body: schema.PasskeySignInRequest,
    answer: { status: 201, body: SignedIn },
    errors: [401, 403, 429],
    // It is checked in a thread, outside of any transaction.
    transaction: false,
    handler: (call) => signInWithPasskey(call, call.body.credential, call.headers.cookie, visitorOf(call)),
  }),
  defineRoute({
    id: 'beginPasskeyByLink',
    method: 'POST',
    path: '/signIn/link/passkey/options',
    tag: TAG,
    summary: 'Ask for a passkey by a one-time link',
    description: `The link stays usable. ${COOKIE}`,
    action: 'public',
    body: schema.PasskeyByLinkRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: schema.PasskeyCreationOptions },
    errors: [403, 404, 409, 429],
    transaction: false,
    handler: async (call) => asked(call, await beginByLink(call, call.body, visitorOf(call))),
  }),
  defineRoute({
    id: 'redeemLinkWithPasskey',
    method: 'POST',
    path: '/signIn/link/passkey',
    tag: TAG,
    summary: 'Use a one-time link with a passkey',
    description:
      'As `POST /signIn/link/redeem`, with a passkey in place of a password, under the name that the passkey was asked for with. A password that the person had is removed; other passkeys stay.',
    action: 'public',
    body: schema.RedeemByPasskeyRequest,
    answer: { status: 201, body: SignedIn },
    errors: [403, 404, 409, 429],
    transaction: false,
    handler: (call) => redeemByPasskey(call, call.body, call.headers.cookie, visitorOf(call)),
  }),
  defineRoute({
    id: 'listAccountPasskeys',
    method: 'GET',
    path: '/account/passkey',
    tag: TAG,
    summary: 'List your passkeys',
    description:
      'Answers your passkeys, the oldest first, and whether you have a password. In a session that began here only: a token is answered an empty list.',
    action: 'authenticated',
    answer: { status: 200, body: schema.PasskeyList },
    handler: (call) => listOwnPasskeys(call, call.principal),
  }),
  defineRoute({
    id: 'beginAccountPasskey',
    method: 'POST',
    path: '/account/passkey/options',
    tag: TAG,
    summary: 'Ask for another passkey of yours',
    description: `In a session that began at most 15 minutes ago. ${COOKIE}`,
    action: 'authenticated',
    answer: { status: 200, body: schema.PasskeyCreationOptions },
    errors: [403, 409],
    transaction: false,
    handler: async (call) => asked(call, await beginAdding(call, call.principal)),
  }),
  defineRoute({
    id: 'createAccountPasskey',
    method: 'POST',
    path: '/account/passkey',
    tag: TAG,
    summary: 'Add a passkey of yours',
    description: 'You may have 20. In a session that began at most 15 minutes ago.',
    action: 'authenticated',
    body: schema.PasskeyRequest,
    answer: { status: 201, body: schema.Passkey },
    errors: [403, 409],
    transaction: false,
    handler: (call) => addPasskey(call, call.principal, call.body, call.headers.cookie, visitorOf(call)),
  }),
  defineRoute({
    id: 'editAccountPasskey',
    method: 'PUT',
    path: '/account/passkey/{passkeyId}',
    tag: TAG,
    summary: 'Give a passkey of yours another name',
    description: 'Only its name can change. For sessions only.',
    action: 'authenticated',
    body: schema.PasskeyNameRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: schema.Passkey },
    errors: [403],
    handler: (call) => namePasskey(call, call.principal, call.params.passkeyId, call.body.name),
  }),
  defineRoute({
    id: 'deleteAccountPasskey',
    method: 'DELETE',
    path: '/account/passkey/{passkeyId}',
    tag: TAG,
    summary: 'Remove a passkey of yours',
    description:
      'Ends your other sessions. The last way to sign in stays. In a session that began at most 15 minutes ago.',
    action: 'authenticated',
    answer: { status: 204, body: null },
    errors: [403, 409],
    transaction: false,
    handler: (call) => removePasskey(call, call.principal, call.params.passkeyId),
  }),
];
