import { readFile } from 'node:fs/promises';
import { TLS_PORT, type MailServer } from '#platform/mail-client/index.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Port for mail that programs submit (RFC 6409). */
const SUBMISSION_PORT = 587;

/** Addresses that the operator's server may have: all, because the operator names it. */
export const ANY_ADDRESS = ['0.0.0.0/0', '::/0'];

/** Returns whether mail is sent to people. */
export const sendsMail = ({ smtpUrl }: Pick<Settings, 'smtpUrl'>): boolean => smtpUrl !== '';

/** Returns the server of the settings. Throws where the file with its password cannot be read, or is empty. */
export async function readMailServer({ smtpUrl, smtpPasswordFile }: Settings): Promise<MailServer> {
  const { protocol, hostname, port, username, password } = new URL(smtpUrl);
  const isTls = protocol === 'smtps:';
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const login = username === '' ? null : await loginOf(username, password, smtpPasswordFile);
  return {
    host,
    port: Number(port) || (isTls ? TLS_PORT : SUBMISSION_PORT),
    ...(isTls && { isTls }),
    // Mail has one-time links, which others on the way must not read.
    requireTls: !isThisMachine(host),
    login,
  };
}

async function loginOf(username: string, password: string, file: string): Promise<MailServer['login']> {
  const given = file === '' ? decodeURIComponent(password) : (await readFile(file, 'utf8')).trim();
  if (given === '')
    throw new Error(
      file === ''
        ? 'QUARTERDECK_SMTP_URL names a user without a password: add it, or set QUARTERDECK_SMTP_PASSWORD_FILE.'
        : `QUARTERDECK_SMTP_PASSWORD_FILE: ${file} is empty.`,
    );
  return { username: decodeURIComponent(username), password: given };
}

const isThisMachine = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(host);
