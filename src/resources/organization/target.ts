import { sql, type Database } from '#platform/database/index.ts';
import type { Target } from '#platform/http/route.ts';

/** Loads the organization of a path, if it is one of the caller's. */
export const organizationTarget: Target<OrganizationTarget> = {
  name: 'Organization',
  param: 'organizationId',
  find: async (db, id, organizationIds, lock) => {
    const query = db
      .selectFrom('organization')
      .selectAll()
      .where('id', '=', id)
      .where('id', '=', sql<string>`any(${organizationIds})`);
    const row = await (lock ? query.forShare() : query).executeTakeFirst();
    return row && { ...row, organizationId: row.id };
  },
};

type Row = Awaited<ReturnType<typeof findOrganization>>;
export type OrganizationTarget = NonNullable<Row> & { organizationId: string };

/** An organization by its id, whoever asks: for the program itself. */
export const findOrganization = (db: Database, id: string) =>
  db.selectFrom('organization').selectAll().where('id', '=', id).executeTakeFirst();
