import { defineRoute, type Route } from '#platform/http/route.ts';
import { confirmAddress } from '#resources/sign-in/address/confirm.ts';
import { askForAddress, keepAddress, ownAddress } from '#resources/sign-in/address/own.ts';
import { AccountAddress, AccountAddressRequest } from '#resources/sign-in/address/schema.ts';
import { visitorOf } from '#resources/sign-in/attempts.ts';
import { LinkSecretRequest } from '#resources/sign-in/schema.ts';

const TAG = 'Sign In';

export const addressRoutes: Route[] = [
  defineRoute({
    id: 'getAccountAddress',
    method: 'GET',
    path: '/account/address',
    tag: TAG,
    summary: 'See your address',
    description:
      'Answers the address that links for a forgotten password are mailed to. In a session that began here only: a token is answered none.',
    action: 'authenticated',
    answer: { status: 200, body: AccountAddress },
    handler: (call) => ownAddress(call, call.principal),
  }),
  defineRoute({
    id: 'editAccountAddress',
    method: 'PUT',
    path: '/account/address',
    tag: TAG,
    summary: 'Ask for another address',
    description:
      'Mails a link to the address, for one hour; it is yours when the link is used. In a session that began at most 15 minutes ago. 403 where the installation sends no mail (QUARTERDECK_SMTP_URL).',
    action: 'authenticated',
    body: AccountAddressRequest,
    refusesUnknownFields: true,
    answer: { status: 202, body: AccountAddress },
    errors: [403, 429],
    transaction: false,
    handler: (call) => askForAddress(call, call.principal, call.body.email, visitorOf(call)),
  }),
  defineRoute({
    id: 'deleteAccountAddressChange',
    method: 'DELETE',
    path: '/account/address/pending',
    tag: TAG,
    summary: 'Keep your address',
    description: 'Withdraws the change that you have asked for: its link ends. For sessions only.',
    action: 'authenticated',
    answer: { status: 204, body: null },
    errors: [404],
    handler: (call) => keepAddress(call, call.principal),
  }),
  defineRoute({
    id: 'confirmAccountAddress',
    method: 'POST',
    path: '/signIn/link/address',
    tag: TAG,
    summary: 'Confirm an address by the link that was mailed there',
    description: 'Ends other mailed links of the person, and tells the address before. It begins no session.',
    action: 'public',
    body: LinkSecretRequest,
    refusesUnknownFields: true,
    answer: { status: 204, body: null },
    errors: [403, 404, 429],
    transaction: false,
    handler: (call) => confirmAddress(call, call.body.secret, visitorOf(call)),
  }),
];
