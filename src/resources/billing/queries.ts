import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';

/** Billing information of an organization; the organization's row must be locked where it is about to be replaced. */
export const findBillingInfo = (db: Database, scope: Scope) =>
  db.selectFrom('billing_info').selectAll().where('organization_id', '=', scope.organizationId).executeTakeFirst();

export const saveBillingInfo = (db: Database, scope: Scope, fields: object) =>
  db
    .insertInto('billing_info')
    .values({ organization_id: scope.organizationId, fields: json(fields) })
    .onConflict((conflict) =>
      conflict.column('organization_id').doUpdateSet({ fields: json(fields), updated_at: sql<Date>`now()` }),
    )
    .execute();
