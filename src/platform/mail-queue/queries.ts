import { sql, type Database } from '#platform/database/index.ts';
import { leasedTable, type ClaimRequest, type OwnRowClaim, type WorkReport } from '#platform/work/index.ts';

/** Claim on a mail. */
export interface MailClaim extends OwnRowClaim {
  kind: string;
  subject_id: string | null;
  recipient: string;
  /** Claims so far, this one among them. */
  attempts: number;
  /** Sendings that have failed. */
  tries: number;
}

/** Days for which a mail is kept that did not arrive, and hours for one that did. */
const KEPT_DAYS = 7;
const KEPT_HOURS = 24;

const TABLE = leasedTable({
  table: 'mail',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`error is not null`,
});

export const { renew: renewMails, giveBack: giveBackMail } = TABLE;

/** Figures of mail to people, for operators. */
export const MAIL_REPORT: WorkReport = { name: 'mails', status: TABLE.status };

export const insertMail = (
  db: Database,
  mail: { id: string; kind: string; subject_id: string | null; recipient: string; sender_id: string | null },
) => db.insertInto('mail').values(mail).execute();

/** Claims mails that are due, those longest due first. */
export async function claimMails(db: Database, { limit, leaseSeconds }: ClaimRequest): Promise<MailClaim[]> {
  const { rows } = await sql<MailClaim>`
    update mail set ${TABLE.claiming(leaseSeconds)} where id in (
      select w.id from mail w where w.status <> 'ENDED' and w.due_at <= clock_timestamp()
        and (w.status = 'WAITING' and (w.lease_until is null or w.lease_until < clock_timestamp()) or ${TABLE.isLeft})
      order by w.due_at limit ${limit} for update skip locked)
    returning id, kind, subject_id, recipient, attempts, tries, claim_token as token`.execute(db);
  return rows;
}

/** Frees a mail that did not arrive, for another sending after `waitMs`. Throws ClaimLost. */
export const { putOff } = TABLE;

/** Writes that a mail is given up. Throws ClaimLost. */
export const giveUp = (db: Database, claim: MailClaim, error: string): Promise<void> =>
  TABLE.end(db, claim, { status: 'ENDED', error });

/** Writes that a mail has arrived, or is about nothing any more, and forgets its address. Throws ClaimLost. */
export const endMail = (db: Database, claim: MailClaim): Promise<void> =>
  TABLE.end(db, claim, { status: 'ENDED', error: null, recipient: '' });

/** Counts the mails in the name of an organization within the last day. */
export const countMails = (db: Database, senderId: string) =>
  db
    .selectFrom('mail')
    .select(sql<number>`count(*)`.as('mails'))
    .where('sender_id', '=', senderId)
    .where('created_at', '>', sql<Date>`now() - make_interval(hours => ${KEPT_HOURS})`)
    .executeTakeFirstOrThrow();

/** Removes mails that have arrived a day ago, and those that did not within days. */
export const removeOldMails = (db: Database) =>
  db
    .deleteFrom('mail')
    .where('created_at', '<', sql<Date>`now() - make_interval(hours => ${KEPT_HOURS})`)
    .where((where) =>
      where.or([
        where.and([where('status', '=', 'ENDED'), where('error', 'is', null)]),
        where('created_at', '<', sql<Date>`now() - make_interval(days => ${KEPT_DAYS})`),
      ]),
    )
    .execute();

export const deleteEveryMail = (db: Database) => db.deleteFrom('mail').execute();
