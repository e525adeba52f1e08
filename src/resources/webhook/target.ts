import type { Target } from '#platform/http/route.ts';
import { findWebhookById, type WebhookRow } from '#resources/webhook/queries.ts';

export type WebhookTarget = WebhookRow & { organizationId: string };

/** Loads the webhook of a path. */
export const webhookTarget: Target<WebhookTarget> = {
  name: 'Webhook',
  param: 'webhookId',
  find: async (db, id, organizationIds, { lock }) => {
    const row = await findWebhookById(db, organizationIds, id, lock);
    return row && { ...row, organizationId: row.organization_id };
  },
};
