import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';

/** Writes what differs from the defaults and moves the service's version. */
export const updateAdvancedSettings = (
  db: Database,
  scope: Scope,
  id: string,
  change: {
    advanced_settings: Record<string, unknown>;
    last_updated_by: string | null;
    last_updated_with: string | null;
  },
) =>
  db
    .updateTable('service')
    .set({
      advanced_settings: json(change.advanced_settings),
      last_updated_by: change.last_updated_by,
      last_updated_with: change.last_updated_with,
      version: sql`version + 1`,
      updated_at: sql`now()`,
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();
