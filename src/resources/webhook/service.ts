import { conflict, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { audit, type EventType } from '#platform/events/audit.ts';
import { OUTBOX_CHANNEL } from '#platform/events/outbox.ts';
import { checkUrl } from '#platform/http-client/index.ts';
import { readSubscription } from '#resources/webhook/events.ts';
import * as queries from '#resources/webhook/queries.ts';
import type { WebhookRequest } from '#resources/webhook/schema.ts';

/** A webhook as it is answered: of its secret only that there is one. */
export const toWebhookView = (row: queries.WebhookRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  kind: row.kind,
  target_url: row.target_url,
  target_secret_set: row.target_secret !== null,
  description: row.description,
  enabled: row.enabled,
  events: row.events,
  subscribed_events: row.subscribed_events,
  project_names_filter: row.project_names_filter,
  environment_types_filter: row.environment_types_filter,
});

/** An attempt as it is answered. Only those that have ended are listed. */
export const toAttemptView = (row: queries.AttemptRow) => ({
  id: row.id,
  created_at: row.started_at.toISOString(),
  kind: row.kind,
  matched_event: row.matched_event,
  target_url_used: row.target_url,
  request: JSON.parse(row.body) as object,
  target_response_status_code: row.status_code ?? 0,
  target_response_body: row.response_body,
  delivery_id: row.delivery_id,
  attempt: row.number,
  ended_at: row.ended_at!.toISOString(),
});

/** Returns the place in the vault for which a webhook's secret is sealed. */
export const secretPlace = (webhookId: string): string => `webhook/${webhookId}/target_secret`;

/** Creates a webhook; 400 for a URL that can never be called. */
export async function createWebhook(context: Context, organizationId: string, input: WebhookRequest) {
  checkUrl(input.target_url, 'target_url', context.settings.allowedPrivateAddresses);
  const id = newId();
  const { events, subscribed } = readSubscription(input.events);
  const row = await queries.insertWebhook(context.db, {
    id,
    organization_id: organizationId,
    kind: input.kind ?? 'STANDARD',
    target_url: input.target_url,
    target_secret: (await sealSecret(context, organizationId, id, input.target_secret)) ?? null,
    description: input.description ?? '',
    enabled: input.enabled ?? true,
    events,
    subscribed_events: subscribed,
    project_names_filter: input.project_names_filter ?? [],
    environment_types_filter: input.environment_types_filter ?? [],
  });
  await tell(context, 'CREATE', row, { after: toWebhookView(row) });
  return toWebhookView(row);
}

/** Changes a webhook; fields that are left out stay. Switched off, it is not called for waiting deliveries either. */
export async function editWebhook(context: Context, webhook: queries.WebhookRow, input: WebhookRequest) {
  checkUrl(input.target_url, 'target_url', context.settings.allowedPrivateAddresses);
  const scope = { organizationId: webhook.organization_id };
  const { events, subscribed } = readSubscription(input.events, {
    events: webhook.events,
    subscribed: webhook.subscribed_events,
  });
  const secret = await sealSecret(context, webhook.organization_id, webhook.id, input.target_secret);
  const row = await queries.updateWebhook(context.db, scope, webhook.id, {
    kind: input.kind,
    target_url: input.target_url,
    ...(secret === undefined ? {} : { target_secret: secret }),
    description: input.description,
    enabled: input.enabled,
    events,
    subscribed_events: subscribed,
    project_names_filter: input.project_names_filter,
    environment_types_filter: input.environment_types_filter,
  });
  if (!row.enabled) await queries.cancelPendingDeliveries(context.db, scope, row.id);
  await tell(context, 'UPDATE', row, { before: toWebhookView(webhook), after: toWebhookView(row) });
  return toWebhookView(row);
}

/** Deletes a webhook with its deliveries. */
export async function deleteWebhook(context: Context, webhook: queries.WebhookRow): Promise<void> {
  const scope = { organizationId: webhook.organization_id };
  await queries.deleteDeliveries(context.db, scope, webhook.id);
  await queries.deleteWebhookRow(context.db, scope, webhook.id);
  await tell(context, 'DELETE', webhook, { before: toWebhookView(webhook) });
}

/**
 * Sends the delivery of an attempt again, at once and under its own id (docs/contributing/rules.md 41); 409 while the webhook is switched
 * off or an attempt is under way.
 */
export async function resendAttempt(context: Context, webhook: queries.WebhookRow, attemptId: string) {
  const scope = { organizationId: webhook.organization_id };
  const delivery = await queries.lockDeliveryOfAttempt(context.db, scope, webhook.id, attemptId);
  if (!delivery) throw notFound('Event');
  if (!webhook.enabled) throw conflict('The webhook is switched off: enable it to send something again.');
  if (delivery.claim_token) throw conflict('This delivery is being sent at the moment: look at its attempts.');
  const renewed = await queries.renewDelivery(context.db, scope, delivery.id);
  await tell(context, 'UPDATE', webhook, { after: { resent_event: attemptId, delivery_id: delivery.id } });
  context.afterCommit(() => context.notify(OUTBOX_CHANNEL));
  return {
    id: renewed.id,
    webhook_id: renewed.webhook_id,
    created_at: renewed.created_at.toISOString(),
    matched_event: renewed.matched_event,
    state: renewed.state,
    attempts: renewed.attempts,
    next_attempt_at: renewed.next_attempt_at.toISOString(),
  };
}

/** Encrypts the secret. An empty text gives null, which removes it; undefined keeps the present one. */
async function sealSecret(context: Context, organizationId: string, webhookId: string, secret: string | undefined) {
  if (secret === undefined) return undefined;
  return secret === '' ? null : context.vault.seal(context.db, organizationId, secretPlace(webhookId), secret);
}

const tell = (
  context: Context,
  type: EventType,
  row: queries.WebhookRow,
  states: { before?: unknown; after?: unknown },
): Promise<void> =>
  audit(context, {
    organizationId: row.organization_id,
    type,
    target: { type: 'WEBHOOK', id: row.id, name: row.target_url },
    ...states,
  });
