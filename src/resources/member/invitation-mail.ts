import { printable } from '#kernel/printable.ts';
import type { MailText } from '#platform/mail-queue/index.ts';

/** Parts of an invitation that its mail tells. */
interface Invitation {
  inviter: string;
  organization_name: string;
  role_name: string;
  email: string;
  expires_at: string;
  invitation_link: string;
}

/** Ways in which the invitation can be accepted. */
interface Ways {
  /** Link with a secret, by which a person chooses name and password; undefined if there is none. */
  link: string | undefined;
  /** Identity provider of the installation; '' if there is none. */
  issuer: string;
}

/** Returns the mail that invites a person. */
export function invitationMail(invitation: Invitation, { link, issuer }: Ways) {
  const [inviter, organization, role] = [invitation.inviter, invitation.organization_name, invitation.role_name].map(
    oneLine,
  ) as [string, string, string];
  const ways = [
    ...(link
      ? [
          `Open this link to choose a name and a password, or to join with the account that you have here. It works once:\n\n${link}`,
        ]
      : []),
    ...(issuer
      ? [
          `${link ? 'Or sign' : 'Sign'} in at ${issuer} with the address ${invitation.email}, and accept as this page says:\n\n${invitation.invitation_link}`,
        ]
      : []),
  ];
  const end = `${invitation.expires_at.slice(0, 16).replace('T', ' ')} UTC`;
  const text = [
    `${inviter} invites you to the organization ${organization} on Quarterdeck, as ${role}.`,
    ...ways,
    `The invitation ends at ${end}. If you do not know who sent it, do nothing.`,
  ].join('\n\n');
  return { subject: `Invitation to ${organization}`, text: `${text}\n` } satisfies MailText;
}

/** Names are foreign text: they must not look like lines of the mail. */
const oneLine = (text: string): string => printable(text.replaceAll(/\s+/g, ' ').trim());
