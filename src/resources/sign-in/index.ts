import type { Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { endEverySession, removeOldSessions } from '#platform/access/sessions.ts';
import {
  createMailLoop,
  deleteEveryMail,
  removeOldMails,
  sendsMail,
  type MailLoopOptions,
} from '#platform/mail-queue/index.ts';
import { INVITATION_MAIL, writeInvitation } from '#resources/member/index.ts';
import {
  ADDRESS_MAIL,
  FORMER_ADDRESS_MAIL,
  writeAddress,
  writeFormerAddress,
} from '#resources/sign-in/address/mails.ts';
import { answerRequest, RECOVERY_MAIL, RECOVERY_REQUEST, writeRecovery } from '#resources/sign-in/recovery.ts';
import { removeOldAttempts } from '#resources/sign-in/attempts.ts';
import { removeOldChallenges } from '#resources/sign-in/passkeys/queries.ts';
import { deleteEveryLink, removeOldLinks } from '#resources/sign-in/queries.ts';

/** Creates the loop that mails people, where the settings name a server. */
export const createPeopleMail = (
  platform: Platform,
  nodeId: string,
  times?: MailLoopOptions['times'],
): ReturnType<typeof createMailLoop>[] =>
  sendsMail(platform.settings) ? [createMailLoop({ platform, nodeId, writers: WRITERS, times })] : [];

const WRITERS: MailLoopOptions['writers'] = {
  [INVITATION_MAIL]: writeInvitation,
  [RECOVERY_REQUEST]: answerRequest,
  [RECOVERY_MAIL]: writeRecovery,
  [ADDRESS_MAIL]: writeAddress,
  [FORMER_ADDRESS_MAIL]: writeFormerAddress,
};

export { listPeople } from '#resources/sign-in/queries.ts';
export { listPasskeys } from '#resources/sign-in/passkeys/queries.ts';
export { dropPasskey, makeLinkFor, setAddress, signOut } from '#resources/sign-in/command-line.ts';
export { signInRoutes } from '#resources/sign-in/routes.ts';

/** Removes sessions, links, challenges and counts that are over. */
export async function removeOldSignIns({ db, clock }: Pick<Platform, 'db' | 'clock'>): Promise<void> {
  const now = clock.now();
  await removeOldSessions(db, now);
  await removeOldLinks(db, now);
  await removeOldChallenges(db, now);
  await removeOldAttempts(db, now);
  await removeOldMails(db);
}

/** Ends every session, every one-time link and every mail that waits; passwords and passkeys stay. After a restore, those that ended since the backup must not be valid again. */
export async function endAllSignIns(db: Database): Promise<void> {
  await endEverySession(db);
  await deleteEveryLink(db);
  await deleteEveryMail(db);
}
