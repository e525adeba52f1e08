import type { Target } from '#platform/http/route.ts';
import { findAlertReceiverById, type AlertReceiverRow } from '#resources/alert-receiver/queries.ts';

export type AlertReceiverTarget = AlertReceiverRow & { organizationId: string };

/** Loads the alert receiver of a path. */
export const alertReceiverTarget: Target<AlertReceiverTarget> = {
  name: 'Alert receiver',
  param: 'alertReceiverId',
  find: async (db, id, organizationIds, { lock }) => {
    const row = await findAlertReceiverById(db, organizationIds, id, lock);
    return row && { ...row, organizationId: row.organization_id };
  },
};
