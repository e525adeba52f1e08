import { invalidField } from '#kernel/errors.ts';
import type { Settings } from '#platform/settings/index.ts';
import { checkSmarthost, isMailAddress, parseSmarthost, TLS_PORT } from '#platform/mail-client/index.ts';
import type { Destination } from '#resources/alert-receiver/destination.ts';
import type { MailFields } from '#resources/alert-receiver/schema.ts';

type MailDestination = Extract<Destination, { type: 'EMAIL' }>;
type Login = MailDestination['server']['login'];

/** Login of a stored receiver. */
export interface StoredLogin {
  smarthost: string | null;
  username: string | null;
  /** Null if there is none, or if an edit replaces it. */
  password: string | null;
}

/** Largest number of recipients of a receiver. */
const MAX_RECIPIENTS = 20;

/**
 * Returns the mailboxes and the server of a receiver; 400 if the server may not be called, or would get the login without TLS. What is left
 * out of the login stays as it is stored, for the same server and user name.
 */
export function readMail(
  { allowedPrivateAddresses }: Pick<Settings, 'allowedPrivateAddresses'>,
  input: MailFields,
  prefix = '',
  stored: StoredLogin = { smarthost: null, username: null, password: null },
): MailDestination {
  const refuse = (field: keyof MailFields, problem: string) => invalidField(`${prefix}${field}`, problem);
  const missing = (['to', 'from', 'smarthost', 'require_tls'] as const).find((field) => input[field] === undefined);
  if (missing) throw refuse(missing, 'is required for type EMAIL');
  const { from, smarthost, require_tls: requireTls } = input as Required<MailFields>;
  if (!isMailAddress(from)) throw refuse('from', 'must be one e-mail address such as alerts@example.com');
  checkSmarthost(smarthost, `${prefix}smarthost`, allowedPrivateAddresses);
  const { host, port } = parseSmarthost(smarthost);
  const login = readLogin(input, refuse, stored);
  if (login && !requireTls && port !== TLS_PORT)
    throw refuse(
      'require_tls',
      `must be true with auth_password, which is sent over TLS only; or use port ${TLS_PORT}`,
    );
  return {
    type: 'EMAIL',
    from,
    to: readRecipients(input.to!, refuse),
    smarthost,
    server: { host, port, requireTls, login },
  };
}

type Refuse = (field: keyof MailFields, problem: string) => Error;

function readRecipients(text: string, refuse: Refuse): string[] {
  const to = [...new Set(text.split(',').map((address) => address.trim()))];
  if (!to.every(isMailAddress))
    throw refuse('to', 'must be e-mail addresses such as ops@example.com, separated by commas');
  if (to.length > MAX_RECIPIENTS) throw refuse('to', `must be at most ${MAX_RECIPIENTS} addresses`);
  return to;
}

/** Returns the login of an input. A stored password goes to no other server than the one that it was given for. */
function readLogin(input: MailFields, refuse: Refuse, stored: StoredLogin): Login {
  const username = (input.auth_username === undefined ? stored.username : input.auth_username) || null;
  const given = input.auth_password ?? undefined;
  for (const field of ['auth_username', 'auth_password'] as const)
    if (/[\0\r\n]/.test(input[field] ?? '')) throw refuse(field, 'must be one line without control characters');
  if (username === null) {
    if (given) throw refuse('auth_username', 'is required with auth_password; send "" as the password for no login');
    return null;
  }
  if (given) return { username, password: given };
  if (given === '' || stored.password === null)
    throw refuse('auth_password', 'is required with auth_username; send null as the user name for no login');
  if (username === stored.username && input.smarthost === stored.smarthost)
    return { username, password: stored.password };
  throw refuse(
    'auth_password',
    'is required again with another smarthost or auth_username: the stored password goes only to the server that it was given for',
  );
}
