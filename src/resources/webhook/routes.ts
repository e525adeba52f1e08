import { visibleEnvironmentIds } from '#platform/access/visibility.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { listAttempts, listWebhooks } from '#resources/webhook/queries.ts';
import { Webhook, WebhookDelivery, WebhookEventList, WebhookList, WebhookRequest } from '#resources/webhook/schema.ts';
import {
  createWebhook,
  deleteWebhook,
  editWebhook,
  resendAttempt,
  toAttemptView,
  toWebhookView,
} from '#resources/webhook/service.ts';
import { webhookTarget } from '#resources/webhook/target.ts';

const tag = 'Organization Webhook';
/** Attempts on a page when none is asked for: there is no end to them, so the list is never answered whole. */
const ATTEMPTS = 100;

export const webhookRoutes: Route[] = [
  defineRoute({
    id: 'listOrganizationWebHooks',
    method: 'GET',
    path: '/organization/{organizationId}/webhook',
    tag,
    summary: 'List the webhooks of an organization',
    description: 'Answers each webhook with its events; of its secret only whether there is one.',
    target: organizationTarget,
    action: 'webhook.read',
    query: PageQuery,
    answer: { status: 200, body: WebhookList },
    handler: ({ db, target, query }) => fetchPage(db, listWebhooks(db, target), query, toWebhookView),
  }),
  defineRoute({
    id: 'createOrganizationWebhook',
    method: 'POST',
    path: '/organization/{organizationId}/webhook',
    tag,
    summary: 'Register a webhook',
    description:
      'Calls are made for each service and deployment, signed if there is a secret. 400 for a URL that can never be called.',
    target: organizationTarget,
    action: 'webhook.edit',
    body: WebhookRequest,
    answer: { status: 201, body: Webhook },
    handler: (call) => createWebhook(call, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getOrganizationWebhook',
    method: 'GET',
    path: '/organization/{organizationId}/webhook/{webhookId}',
    tag,
    summary: 'Get a webhook',
    description: 'Answers the webhook with its events and filters; of its secret only whether there is one.',
    target: webhookTarget,
    action: 'webhook.read',
    answer: { status: 200, body: Webhook },
    readsOnlyTarget: true,
    handler: ({ target }) => toWebhookView(target),
  }),
  defineRoute({
    id: 'editOrganizationWebhook',
    method: 'PUT',
    path: '/organization/{organizationId}/webhook/{webhookId}',
    tag,
    summary: 'Edit a webhook',
    description:
      'Fields that are left out keep their values. A webhook that is switched off is not called for what waits either.',
    target: webhookTarget,
    action: 'webhook.edit',
    body: WebhookRequest,
    answer: { status: 200, body: Webhook },
    handler: (call) => editWebhook(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteOrganizationWebhook',
    method: 'DELETE',
    path: '/organization/{organizationId}/webhook/{webhookId}',
    tag,
    summary: 'Delete a webhook',
    description: 'Removes the webhook with its calls; those that wait are not made.',
    target: webhookTarget,
    action: 'webhook.edit',
    answer: { status: 204, body: null },
    handler: (call) => deleteWebhook(call, call.target),
  }),
  defineRoute({
    id: 'listWebhookEvent',
    method: 'GET',
    path: '/organization/{organizationId}/webhook/{webhookId}/event',
    tag,
    summary: 'List the attempts to call a webhook, the newest first',
    description: `Without page and page_size the newest ${ATTEMPTS} are answered. Attempts are kept for 30 days.`,
    target: webhookTarget,
    action: 'webhook.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: WebhookEventList },
    handler: ({ db, principal, target, query }) => {
      const seen = visibleEnvironmentIds(principal, target.organizationId, 'event.read');
      const ask = query.page === undefined && query.page_size === undefined ? { page_size: ATTEMPTS } : query;
      return fetchPage(db, listAttempts(db, target, target.id, seen), ask, toAttemptView);
    },
  }),
  defineRoute({
    id: 'resendWebhookEvent',
    method: 'POST',
    path: '/organization/{organizationId}/webhook/{webhookId}/event/{eventId}/resend',
    tag,
    summary: 'Send an attempt again',
    description: 'The call is made at once under the id of the first one, and repeated like it when it fails.',
    target: webhookTarget,
    action: 'webhook.edit',
    answer: { status: 200, body: WebhookDelivery },
    handler: (call) => resendAttempt(call, call.target, call.params.eventId),
  }),
];
