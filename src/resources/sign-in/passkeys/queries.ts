import type { Database } from '#platform/database/index.ts';

/** Passkey that a browser has made. */
export interface NewPasskey {
  id: string;
  credential_id: Buffer;
  public_key: Buffer;
  sign_count: number;
  name: string;
  rp_id: string;
  transports: string[];
  synced: boolean;
}

export const insertPasskey = (db: Database, userId: string, passkey: NewPasskey) =>
  db
    .insertInto('passkey')
    .values({ ...passkey, user_id: userId })
    .execute();

const selectPasskey = (db: Database) =>
  db
    .selectFrom('passkey')
    .select(['id', 'user_id', 'credential_id', 'public_key', 'sign_count', 'name', 'rp_id', 'transports'])
    .select(['synced', 'created_at', 'last_used_at']);

/** Finds a passkey by the id that its authenticator has given; `lock` keeps others from using it until the commit. */
export const findByCredential = (db: Database, credentialId: Buffer, lock = false) =>
  selectPasskey(db)
    .where('credential_id', '=', credentialId)
    .$if(lock, (query) => query.forUpdate())
    .executeTakeFirst();

/** Lists the passkeys of a person, the oldest first. */
export const listPasskeys = (db: Database, userId: string) =>
  selectPasskey(db).where('user_id', '=', userId).orderBy('created_at').orderBy('id').execute();

export const noteUse = (db: Database, id: string, signCount: number, now: Date) =>
  db.updateTable('passkey').set({ sign_count: signCount, last_used_at: now }).where('id', '=', id).execute();

/** Gives a passkey of a person another name; returns whether they have it. */
export const renamePasskey = async (db: Database, userId: string, id: string, name: string): Promise<boolean> => {
  const renamed = db.updateTable('passkey').set({ name }).where('user_id', '=', userId).where('id', '=', id);
  return (await renamed.executeTakeFirst()).numUpdatedRows === 1n;
};

export const deletePasskey = (db: Database, userId: string, id: string) =>
  db.deleteFrom('passkey').where('user_id', '=', userId).where('id', '=', id).returning('name').executeTakeFirst();

/** Notes that a challenge was answered; returns whether it was the first time. */
export const takeChallenge = async (db: Database, id: string, expiresAt: Date): Promise<boolean> => {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('passkey_challenge')
    .values({ id, expires_at: expiresAt })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
};

/** Removes challenges that are too old to be answered again. */
export const removeOldChallenges = (db: Database, now: Date) =>
  db.deleteFrom('passkey_challenge').where('expires_at', '<', now).execute();
