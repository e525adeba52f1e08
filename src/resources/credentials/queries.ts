import { sql, type Database, type Scope } from '#platform/database/index.ts';

export type CloudProvider = 'AWS' | 'SCW' | 'GCP' | 'AZURE' | 'ON_PREMISE';

export type CredentialsRow = NonNullable<Awaited<ReturnType<typeof findCredentialsById>>>;

/** Credentials of an organization in creation order, of one provider if it is named. */
export const listCredentials = (db: Database, scope: Scope, provider?: CloudProvider) =>
  db
    .selectFrom('credentials')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .$if(provider !== undefined, (query) => query.where('cloud_provider', '=', provider!))
    .orderBy('created_at')
    .orderBy('id');

export const findCredentialsById = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('credentials')
    .selectAll()
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .executeTakeFirst();

/** Finds credentials that a body names and locks them against deletion until the commit. */
export const holdCredentials = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('credentials')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst();

/** Locks the row against other writes until the commit. */
export const lockCredentials = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('credentials')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export interface CredentialsColumns {
  name: string;
  object_type: string;
  fields: Record<string, unknown>;
  secrets: Buffer | null;
}

const asColumns = ({ fields, ...others }: CredentialsColumns) => ({ ...others, fields: JSON.stringify(fields) });

export const insertCredentials = (
  db: Database,
  row: CredentialsColumns & { id: string; organization_id: string; cloud_provider: CloudProvider },
) =>
  db
    .insertInto('credentials')
    .values({ ...row, ...asColumns(row) })
    .execute();

export const updateCredentials = (db: Database, scope: Scope, id: string, columns: CredentialsColumns) =>
  db
    .updateTable('credentials')
    .set({ ...asColumns(columns), updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteCredentialsRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('credentials').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();
