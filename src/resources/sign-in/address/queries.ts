import type { Database } from '#platform/database/index.ts';

/** Link by which a person proves that they read mail at an address. */
export interface AddressLink {
  id: string;
  user_id: string;
  email: string;
  secret_hash: Buffer;
  created_at: Date;
  expires_at: Date;
}

/** Replaces the link of a person. */
export const saveAddressLink = (db: Database, link: AddressLink) =>
  db
    .insertInto('address_link')
    .values(link)
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(link))
    .execute();

const selectAddressLink = (db: Database) =>
  db
    .selectFrom('address_link')
    .innerJoin('sign_in', 'sign_in.user_id', 'address_link.user_id')
    .select(['address_link.id', 'address_link.user_id', 'address_link.email', 'address_link.secret_hash'])
    .select(['address_link.expires_at', 'sign_in.name']);

/** Finds a link; `lock` keeps others from using it until the commit. */
export const findAddressLink = (db: Database, id: string, lock = false) =>
  selectAddressLink(db)
    .where('address_link.id', '=', id)
    .$if(lock, (query) => query.forUpdate('address_link'))
    .executeTakeFirst();

export const findAddressLinkOf = (db: Database, userId: string) =>
  selectAddressLink(db).where('address_link.user_id', '=', userId).executeTakeFirst();

/** Ends the link of a person; returns whether there was one. */
export const deleteAddressLinkOf = async (db: Database, userId: string): Promise<boolean> => {
  const { numDeletedRows } = await db.deleteFrom('address_link').where('user_id', '=', userId).executeTakeFirst();
  return numDeletedRows > 0n;
};

export const deleteEveryAddressLink = (db: Database) => db.deleteFrom('address_link').execute();

export const removeOldAddressLinks = (db: Database, now: Date) =>
  db.deleteFrom('address_link').where('expires_at', '<=', now).execute();
