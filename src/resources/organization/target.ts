import { accessVersionOf } from '#platform/access/remembered.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { prepared, preparedRead } from '#platform/database/prepared.ts';
import type { Target } from '#platform/http/route.ts';

const build = (db: Database, organizationIds: string[], id: string, userId: string | null) =>
  db
    .selectFrom('organization')
    .selectAll()
    .select(accessVersionOf(userId).as('accessVersion'))
    .where('id', '=', id)
    .where('id', '=', sql<string>`any(${organizationIds})`);

const selectById = preparedRead(build);
const HELD = {
  forShare: prepared((...args: Parameters<typeof build>) => build(...args).forShare()),
  forUpdate: prepared((...args: Parameters<typeof build>) => build(...args).forUpdate()),
};

/** Returns the target. Writes hold its row against its deletion only (`forShare`), or against every other write. */
const targetWith = (hold: 'forShare' | 'forUpdate'): Target<OrganizationTarget> => ({
  name: 'Organization',
  param: 'organizationId',
  tellsAccess: true,
  ...(hold === 'forShare' ? { isShared: true } : {}),
  find: async (db, id, organizationIds, { lock, userId = null }) => {
    const [row] = await (lock ? HELD[hold] : selectById)(db, organizationIds, id, userId);
    return row && { ...row, organizationId: row.id };
  },
});

/** Loads the organization of a path, if it is one of the caller's. For what stands in the organization. */
export const organizationTarget: Target<OrganizationTarget> = targetWith('forShare');

/**
 * Loads the organization of a path for changes of the organization itself. Two writers that shared the row would wait for each other for
 * ever.
 */
export const organizationItself: Target<OrganizationTarget> = targetWith('forUpdate');

type Row = Awaited<ReturnType<typeof findOrganization>>;
export type OrganizationTarget = NonNullable<Row> & { organizationId: string };

/** Returns an organization by its id without a check of access: for the program itself. */
const findOrganization = (db: Database, id: string) =>
  db.selectFrom('organization').selectAll().where('id', '=', id).executeTakeFirst();
