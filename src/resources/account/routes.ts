import { refuseConditions } from '#platform/access/granting.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { AccountInfo, AccountInfoEditRequest } from '#resources/account/schema.ts';
import { editAccount, getAccount } from '#resources/account/service.ts';

export const accountRoutes: Route[] = [
  defineRoute({
    id: 'getAccountInformation',
    method: 'GET',
    path: '/account',
    tag: 'Account Info',
    summary: 'Get your own account',
    description: 'Answers your names, picture and address for messages. A token answers the account of its creator.',
    action: 'authenticated',
    answer: { status: 200, body: AccountInfo },
    handler: (call) => getAccount(call, call.principal.userId),
  }),
  defineRoute({
    id: 'editAccountInformation',
    method: 'PUT',
    path: '/account',
    tag: 'Account Info',
    summary: 'Edit your own account',
    description:
      'Sets the address for messages, which is never used to recognise you. Without the field nothing changes.',
    action: 'authenticated',
    body: AccountInfoEditRequest,
    answer: { status: 200, body: AccountInfo },
    // What is compared with If-Match stays so until the commit.
    current: (call) => getAccount(call, call.principal.userId, true),
    handler: (call) => {
      refuseConditions(call.principal);
      return editAccount(call, call.principal, call.body);
    },
  }),
];
