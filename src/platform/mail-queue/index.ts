import { AppError } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { storable } from '#kernel/storable.ts';
import { systemContext, type Context, type Platform } from '#platform/context.ts';
import { OutgoingError } from '#platform/http-client/index.ts';
import { createMailClient, isMailAddress, type Mail, type MailClient } from '#platform/mail-client/index.ts';
import * as queries from '#platform/mail-queue/queries.ts';
import { ANY_ADDRESS, readMailServer } from '#platform/mail-queue/server.ts';
import { WorkLoop, type Lease } from '#platform/work/index.ts';
import type { Settings } from '#platform/settings/index.ts';

export { deleteEveryMail, MAIL_REPORT, removeOldMails } from '#platform/mail-queue/queries.ts';
export { sendsMail } from '#platform/mail-queue/server.ts';

const CHANNEL = 'mail';

/** Milliseconds between a failed sending and the next one. After the last a mail is given up. */
const SCHEDULE_MS: readonly number[] = [
  5_000, 30_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000, 43_200_000,
];
/** Claims that end without a result, such as those of killed processes, beyond which a mail is given up. */
const MOST_PICKUPS = 20;
/** Mails in the name of an organization within 24 hours. */
const MOST_A_DAY = 200;
const BROKEN_OFF = 'The mail was given up: its sending was broken off again and again. The log of the server says why.';

/** Text of a mail. */
export type MailText = Pick<Mail, 'subject' | 'text'>;

/** Mail that waits. */
export interface WaitingMail {
  /** Thing that it is about; null where the recipient says all. */
  subjectId: string | null;
  recipient: string;
}

/**
 * Writes the text of a mail when it is sent; null if there is nothing to send any more. It derives the secrets of links then, so that no
 * waiting mail has any.
 */
export type MailWriter = (context: Context, mail: WaitingMail) => Promise<MailText | null>;

/**
 * Stores a mail that is sent after the commit, and again until the server of the settings has taken it. `senderId` names the organization in
 * whose name it is sent. Throws 429 where that has sent too many: its members are not the operator, whose server they use.
 */
export async function enqueueMail(
  context: Context,
  kind: string,
  { subjectId: subject_id, recipient }: WaitingMail,
  senderId: string | null = null,
): Promise<void> {
  if (senderId !== null && (await queries.countMails(context.db, senderId)).mails >= MOST_A_DAY)
    throw new AppError('rate_limited', `The organization has sent ${MOST_A_DAY} mails within 24 hours: wait a day.`, {
      headers: { 'Retry-After': '86400' },
    });
  await queries.insertMail(context.db, { id: newId(), kind, subject_id, recipient, sender_id: senderId });
  context.afterCommit(() => context.notify(CHANNEL));
}

export interface MailLoopOptions {
  platform: Platform;
  nodeId: string;
  /** Writers of texts by the kind of mail. */
  writers: Record<string, MailWriter>;
  /** Times, set by tests. */
  times?: { scheduleMs?: readonly number[]; pollMs?: number; leaseSeconds?: number };
}

/** Creates the loop that sends mail to people, at least once each. */
export function createMailLoop({ platform, nodeId, writers, times = {} }: MailLoopOptions) {
  const { pollMs = 2_000, leaseSeconds = 15, scheduleMs = SCHEDULE_MS } = times;
  const client = createMailClient({ allowedPrivateAddresses: ANY_ADDRESS });
  return new WorkLoop<queries.MailClaim>(
    {
      name: queries.MAIL_REPORT.name,
      leaseSeconds,
      slots: 4,
      pollMs,
      channel: CHANNEL,
      claim: queries.claimMails,
      renew: queries.renewMails,
      giveBack: (db, claim, stoppedBy) => queries.giveBackMail(db, claim, stoppedBy, leaseSeconds),
      run: (claim, lease) => deliver({ platform, client, writers, scheduleMs }, claim, lease),
      attempts: {
        most: MOST_PICKUPS,
        of: ({ attempts, tries }) => attempts - tries,
        giveUp: (claim) => queries.giveUp(platform.db, claim, BROKEN_OFF),
      },
      fields: ({ id, kind }) => ({ mail: id, kind }),
    },
    { platform, nodeId },
  );
}

interface DeliverOptions {
  platform: Platform;
  client: MailClient;
  writers: Record<string, MailWriter>;
  scheduleMs: readonly number[];
}

/** Sends a mail and records what became of it. Throws ClaimLost. */
async function deliver(
  { platform, client, writers, scheduleMs }: DeliverOptions,
  claim: queries.MailClaim,
  lease: Lease,
): Promise<void> {
  const { db, settings, log } = platform;
  const write = writers[claim.kind];
  const context = systemContext(platform);
  const text = write ? await write(context, { subjectId: claim.subject_id, recipient: claim.recipient }) : null;
  if (!text) return queries.endMail(db, claim);
  lease.hold();
  const problem = await sendTo(client, settings, { id: claim.id, to: claim.recipient, ...text }, lease.signal);
  if (problem === null) return queries.endMail(db, claim);
  const waitMs = scheduleMs[claim.tries];
  log.warn(
    { mail: claim.id, kind: claim.kind, tries: claim.tries + 1, problem, givenUp: waitMs === undefined },
    'a mail to a person could not be sent',
  );
  if (waitMs !== undefined) return queries.putOff(db, claim, problem, waitMs);
  await queries.giveUp(db, claim, `${problem} The mail was given up after ${claim.tries + 1} tries.`);
}

/** Sends a mail through the server of the settings; returns why it did not arrive, null if it did. */
async function sendTo(
  client: MailClient,
  settings: Settings,
  { id, to, ...text }: { id: string; to: string } & MailText,
  signal: AbortSignal,
): Promise<string | null> {
  if (!isMailAddress(to)) return 'The address is none that mail is sent to: it must be plain ASCII, without quotes.';
  try {
    const server = await readMailServer(settings);
    const mail = { id, from: settings.smtpFrom, to: [to], ...text };
    const { accepted, refusal } = await client.send(server, mail, signal);
    return accepted ? null : storable(`${server.host}:${server.port} ${refusal}.`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof OutgoingError) return storable(error.message);
    return storable(`The mail server of the settings cannot be used: ${(error as Error).message}`);
  }
}

/** Sends a mail now, without storing it. Throws an Error that says why it did not arrive. */
export async function sendNow(settings: Settings, to: string, text: MailText): Promise<void> {
  const client = createMailClient({ allowedPrivateAddresses: ANY_ADDRESS });
  const problem = await sendTo(client, settings, { id: newId(), to, ...text }, new AbortController().signal);
  if (problem !== null) throw new Error(problem);
}
