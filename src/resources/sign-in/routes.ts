import { defineRoute, type Route } from '#platform/http/route.ts';
import { InviteMember } from '#resources/member/index.ts';
import { addressRoutes } from '#resources/sign-in/address/routes.ts';
import { visitorOf } from '#resources/sign-in/attempts.ts';
import { passkeyRoutes } from '#resources/sign-in/passkeys/routes.ts';
import { requestRecovery } from '#resources/sign-in/recovery.ts';
import { lookAtLink, redeemLink } from '#resources/sign-in/redeem.ts';
import * as schema from '#resources/sign-in/schema.ts';
import * as service from '#resources/sign-in/service.ts';

const TAG = 'Sign In';

export const signInRoutes: Route[] = [
  defineRoute({
    id: 'signIn',
    method: 'POST',
    path: '/signIn',
    tag: TAG,
    summary: 'Sign in with a name and a password',
    description:
      'Begins a session. Wrong names and wrong passwords are refused alike; after too many of them the answer is 429 with the seconds to wait.',
    action: 'public',
    body: schema.SignInRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: schema.SignedIn },
    errors: [401, 403, 429],
    // A digest takes long: it is made outside of any transaction.
    transaction: false,
    handler: (call) => service.signIn(call, call.body, visitorOf(call)),
  }),
  defineRoute({
    id: 'getSignInLink',
    method: 'POST',
    path: '/signIn/link',
    tag: TAG,
    summary: 'See what a one-time link is for',
    description:
      'Takes the part of the link behind its #, which is a secret and therefore in the body. The link stays usable.',
    action: 'public',
    body: schema.LinkSecretRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: schema.SignInLink },
    errors: [403, 404, 429],
    transaction: false,
    handler: (call) => lookAtLink(call, call.body.secret, visitorOf(call)),
  }),
  defineRoute({
    id: 'redeemSignInLink',
    method: 'POST',
    path: '/signIn/link/redeem',
    tag: TAG,
    summary: 'Use a one-time link',
    description:
      'The link of an invitation makes an account with this name and password, and a member of the organization. The link of `quarterdeck user link` sets name and password of its person, and ends their sessions. Both begin a session.',
    action: 'public',
    body: schema.RedeemRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: schema.SignedIn },
    errors: [403, 404, 409, 429],
    transaction: false,
    handler: (call) => redeemLink(call, call.body, visitorOf(call)),
  }),
  defineRoute({
    id: 'requestSignInLink',
    method: 'POST',
    path: '/signIn/recovery',
    tag: TAG,
    summary: 'Ask for a link in place of a forgotten password',
    description:
      'The link is mailed to the address if an account has it, and is valid for one hour. The answer is the same for every address. 403 where the installation sends no mail (QUARTERDECK_SMTP_URL).',
    action: 'public',
    body: schema.RecoveryRequest,
    refusesUnknownFields: true,
    answer: { status: 204, body: null },
    errors: [403, 429],
    transaction: false,
    handler: (call) => requestRecovery(call, call.body.email, visitorOf(call)),
  }),
  defineRoute({
    id: 'acceptInvitationByLink',
    method: 'POST',
    path: '/account/invitation',
    tag: TAG,
    summary: 'Accept an invitation with the account that you have',
    description: 'Takes the part of its link behind the #. For sessions only: a token is nobody who could join.',
    action: 'authenticated',
    body: schema.LinkSecretRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: InviteMember },
    errors: [403, 404, 409],
    handler: (call) => service.acceptInvitation(call, call.principal, call.body.secret),
  }),
  defineRoute({
    id: 'listAccountSessions',
    method: 'GET',
    path: '/account/session',
    tag: TAG,
    summary: 'List your sessions',
    description:
      'Answers the sessions that began here, with your password or a passkey, and are not over, the newest first. In one of them only: a token is answered an empty list.',
    action: 'authenticated',
    answer: { status: 200, body: schema.SessionList },
    handler: (call) => service.listOwnSessions(call, call.principal),
  }),
  defineRoute({
    id: 'deleteAccountSession',
    method: 'DELETE',
    path: '/account/session/{sessionId}',
    tag: TAG,
    summary: 'End a session of yours',
    description: 'It holds from the next request on, for open streams within three seconds. For sessions only.',
    action: 'authenticated',
    answer: { status: 204, body: null },
    handler: (call) => service.endOwnSession(call, call.principal, call.params.sessionId),
  }),
  defineRoute({
    id: 'editAccountPassword',
    method: 'PUT',
    path: '/account/password',
    tag: TAG,
    summary: 'Change your password',
    description:
      'Ends your other sessions. API tokens and passkeys stay. A person without a password sets the first one, in a session that began at most 15 minutes ago.',
    action: 'authenticated',
    body: schema.PasswordChangeRequest,
    refusesUnknownFields: true,
    answer: { status: 204, body: null },
    errors: [403, 409],
    transaction: false,
    handler: (call) => service.changePassword(call, call.principal, call.body, visitorOf(call)),
  }),
  ...addressRoutes,
  ...passkeyRoutes,
];
