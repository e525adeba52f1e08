import { inOrder, type Database } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';

export interface ServiceCopy {
  id: string;
  organization_id: string;
  environment_id: string;
  stage_id: string;
  kind: string;
  name: string;
  description: string | null;
  icon_uri: string;
  spec: unknown;
  requires: string[];
  details: unknown;
  advanced_settings: unknown;
  is_skipped: boolean;
  last_updated_by: string | null;
  last_updated_with: string | null;
}

/** Inserts services with all of their configuration, in their order; status, release and handle begin anew. */
export const insertServiceCopies = (db: Database, copies: ServiceCopy[]) =>
  db
    .insertInto('service')
    .values(
      copies.map(({ spec, details, advanced_settings, ...copy }, index) => ({
        ...copy,
        spec: json(spec),
        details: json(details),
        advanced_settings: json(advanced_settings),
        created_at: inOrder(index),
      })),
    )
    .execute();
