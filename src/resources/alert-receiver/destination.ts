import type { Context } from '#platform/context.ts';
import { parseSmarthost, type MailServer } from '#platform/mail-client/index.ts';
import type { AlertReceiverRow } from '#resources/alert-receiver/queries.ts';

/** Webhook or mailboxes that the messages of a receiver go to. */
export type Destination =
  { type: 'SLACK'; url: string } | { type: 'EMAIL'; from: string; to: string[]; smarthost: string; server: MailServer };

/** Columns that hold a destination. */
export type DestinationColumns = Pick<AlertReceiverRow, (typeof DESTINATION_COLUMNS)[number]>;
export const DESTINATION_COLUMNS = [
  'webhook_url',
  'mail_to',
  'mail_from',
  'smarthost',
  'auth_username',
  'auth_password',
  'require_tls',
] as const;

/** Additional data that binds a sealed value to its row. */
const sealedAs = (id: string, column: 'webhook_url' | 'auth_password'): string => `alert_receiver/${id}/${column}`;

/** Returns the columns of a destination, its credentials encrypted. */
export async function sealDestination(
  { db, vault }: Pick<Context, 'db' | 'vault'>,
  organizationId: string,
  id: string,
  destination: Destination,
): Promise<DestinationColumns> {
  const seal = (column: 'webhook_url' | 'auth_password', value: string) =>
    vault.seal(db, organizationId, sealedAs(id, column), value);
  const mail = { mail_to: null, mail_from: null, smarthost: null, auth_username: null, auth_password: null };
  if (destination.type === 'SLACK')
    return { ...mail, require_tls: null, webhook_url: await seal('webhook_url', destination.url) };
  const { from, to, smarthost, server } = destination;
  return {
    webhook_url: null,
    mail_to: to.join(','),
    mail_from: from,
    smarthost,
    auth_username: server.login?.username ?? null,
    auth_password: server.login && (await seal('auth_password', server.login.password)),
    require_tls: server.requireTls,
  };
}

/** Returns the destination of a stored receiver, its credentials decrypted. */
export async function openDestination(
  { db, vault }: Pick<Context, 'db' | 'vault'>,
  row: DestinationColumns & { organization_id: string; receiver_id: string },
): Promise<Destination> {
  const open = (column: 'webhook_url' | 'auth_password', sealed: Buffer) =>
    vault.open(db, row.organization_id, sealedAs(row.receiver_id, column), sealed);
  if (row.webhook_url) return { type: 'SLACK', url: await open('webhook_url', row.webhook_url) };
  const { auth_username: username, auth_password: password } = row;
  return {
    type: 'EMAIL',
    from: row.mail_from!,
    to: row.mail_to!.split(','),
    smarthost: row.smarthost!,
    server: {
      ...parseSmarthost(row.smarthost!),
      requireTls: row.require_tls!,
      login: password && { username: username!, password: await open('auth_password', password) },
    },
  };
}
