import { newOrderedId } from '#kernel/ids.ts';
import { bodyOf } from '#delivery/webhooks/message.ts';
import * as queries from '#delivery/webhooks/queries.ts';
import type { Platform } from '#platform/context.ts';
import type { DeploymentOutboxEvent } from '#platform/events/outbox.ts';

const EVENTS_AT_ONCE = 100;
/** Rows of one insert: a statement takes at most 65,535 parameters. */
const ROWS_AT_ONCE = 5_000;

/**
 * Turns events of the outbox into deliveries, one for each subscribed webhook. All in one transaction, so that each event becomes exactly
 * one delivery with one id. Returns the number of events.
 */
export async function fanOut(platform: Platform): Promise<number> {
  return platform.db.transaction().execute(async (db) => {
    const events = await queries.takeOutboxRows(db, EVENTS_AT_ONCE);
    if (events.length === 0) return 0;
    const webhooks = await queries.listEnabledWebhooks(db, [...new Set(events.map((row) => row.organization_id))]);
    const deliveries = events
      .toSorted((a, b) => a.id - b.id)
      .flatMap((row) =>
        webhooks
          .filter((webhook) => webhook.organization_id === row.organization_id && wants(webhook, row.payload))
          .map((webhook) => deliveryOf(platform, webhook, row.payload)),
      );
    for (let from = 0; from < deliveries.length; from += ROWS_AT_ONCE)
      await queries.insertDeliveries(db, deliveries.slice(from, from + ROWS_AT_ONCE));
    return events.length;
  });
}

function wants(webhook: queries.SubscribedWebhook, event: DeploymentOutboxEvent): boolean {
  const project = event.project.name.toLowerCase();
  const { project_names_filter: projects, environment_types_filter: modes } = webhook;
  return (
    webhook.events.includes(event.type) &&
    (projects.length === 0 || projects.some((name) => name.trim().toLowerCase() === project)) &&
    (modes.length === 0 || modes.includes(event.environment.mode))
  );
}

function deliveryOf(platform: Platform, webhook: queries.SubscribedWebhook, event: DeploymentOutboxEvent) {
  const name = webhook.subscribed_events[webhook.events.indexOf(event.type)] ?? event.type;
  return {
    id: newOrderedId(platform.clock.now().getTime()),
    organization_id: webhook.organization_id,
    webhook_id: webhook.id,
    kind: webhook.kind,
    matched_event: event.type,
    body: bodyOf(webhook.kind, name, event, platform.settings.baseUrl),
  };
}
