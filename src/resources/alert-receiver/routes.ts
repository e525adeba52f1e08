import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery, Type } from '#platform/http/schema.ts';
import { organizationTarget, requireOrganization } from '#resources/organization/index.ts';
import { listAlertReceivers } from '#resources/alert-receiver/queries.ts';
import * as schema from '#resources/alert-receiver/schema.ts';
import { sendTest } from '#resources/alert-receiver/send.ts';
import * as service from '#resources/alert-receiver/service.ts';
import { alertReceiverTarget } from '#resources/alert-receiver/target.ts';

const tag = 'Alert Receivers';
const ONE = '/alert-receivers/{alertReceiverId}';

export const alertReceiverRoutes: Route[] = [
  defineRoute({
    id: 'getAlertReceivers',
    method: 'GET',
    path: '/organization/{organizationId}/alert-receivers',
    tag,
    summary: 'List the alert receivers of an organization',
    description:
      'Answers each receiver without the URL of its webhook, which is a credential, and without its password.',
    target: organizationTarget,
    action: 'alertReceiver.read',
    query: PageQuery,
    answer: { status: 200, body: schema.AlertReceiverList },
    handler: ({ db, target, query }) =>
      fetchPage(db, listAlertReceivers(db, target), query, service.toAlertReceiverView),
  }),
  defineRoute({
    id: 'createAlertReceiver',
    method: 'POST',
    path: '/alert-receivers',
    tag,
    summary: 'Create an alert receiver',
    description:
      'Stores where messages of alerts go: a webhook (SLACK) or mailboxes (EMAIL). URL and password are encrypted. An organization has at most 100.',
    action: 'authenticated',
    body: schema.AlertReceiverRequest,
    answer: { status: 201, body: schema.AlertReceiver },
    errors: [403, 409],
    handler: (call) => {
      requireOrganization(call, call.body.organization_id, 'alertReceiver.edit', 'organization_id');
      return service.createAlertReceiver(call, call.body);
    },
  }),
  defineRoute({
    id: 'getAlertReceiver',
    method: 'GET',
    path: ONE,
    tag,
    summary: 'Get an alert receiver',
    description: 'The URL of its webhook and the password of its mail server are never answered.',
    target: alertReceiverTarget,
    action: 'alertReceiver.read',
    answer: { status: 200, body: schema.AlertReceiver },
    handler: ({ target }) => service.toAlertReceiverView(target),
  }),
  defineRoute({
    id: 'editAlertReceiver',
    method: 'PUT',
    path: ONE,
    tag,
    summary: 'Edit an alert receiver',
    description:
      'A URL, login, owner or severity that is left out stays; the password only for the same smarthost and auth_username.',
    target: alertReceiverTarget,
    action: 'alertReceiver.edit',
    body: schema.AlertReceiverEditRequest,
    answer: { status: 200, body: schema.AlertReceiver },
    handler: (call) => service.editAlertReceiver(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteAlertReceiver',
    method: 'DELETE',
    path: ONE,
    tag,
    summary: 'Delete an alert receiver',
    description: 'Removes the receiver with its credentials; nothing is sent to it any more.',
    target: alertReceiverTarget,
    action: 'alertReceiver.edit',
    answer: { status: 204, body: null },
    handler: (call) => service.deleteAlertReceiver(call, call.target),
  }),
  defineRoute({
    id: 'validateExistingAlertReceiver',
    method: 'POST',
    path: `${ONE}/validate`,
    tag,
    summary: 'Send a test message to an alert receiver',
    description: 'Sends the message as one of an alert; 502 says why it did not arrive, or at which recipient.',
    target: alertReceiverTarget,
    action: 'alertReceiver.edit',
    body: schema.ValidateRequest,
    optionalBody: true,
    answer: { status: 200, body: Type.Object({}) },
    errors: [502],
    transaction: false,
    handler: async (call) => {
      await service.testAlertReceiver(call, call.body.message);
      return {};
    },
  }),
  defineRoute({
    id: 'validateNewAlertReceiver',
    method: 'POST',
    path: '/alert-receivers/validate',
    tag,
    summary: 'Send a test message to an alert receiver that is not stored',
    description: 'Sends the message and stores nothing; 502 says why it did not arrive, or at which recipient.',
    action: 'authenticated',
    body: schema.ValidateNewRequest,
    answer: { status: 200, body: Type.Object({}) },
    errors: [403, 502],
    transaction: false,
    handler: async (call) => {
      const { alert_receiver: input, message } = call.body;
      requireOrganization(call, input.organization_id, 'alertReceiver.edit', 'alert_receiver.organization_id');
      const destination = service.destinationOf(call, input, 'alert_receiver.');
      await sendTest(call, destination, { name: input.name, text: message });
      return {};
    },
  }),
];
