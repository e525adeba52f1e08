import { conflict, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { audit, type EventType } from '#platform/events/audit.ts';
import { checkProtectedUrl } from '#platform/http-client/index.ts';
import type { Call } from '#platform/http/route.ts';
import { foreignOrganization, lockOrganization } from '#resources/organization/index.ts';
import { openDestination, sealDestination, type Destination } from '#resources/alert-receiver/destination.ts';
import { readMail, type StoredLogin } from '#resources/alert-receiver/mail.ts';
import * as queries from '#resources/alert-receiver/queries.ts';
import { mail, type AlertReceiverEditRequest, type AlertReceiverRequest } from '#resources/alert-receiver/schema.ts';
import { hostOf, sendTest } from '#resources/alert-receiver/send.ts';

/** Largest number of receivers of an organization. */
const MAX_RECEIVERS = 100;

/** A receiver as it is answered: never its URL or password. */
export const toAlertReceiverView = (row: queries.AlertReceiverRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  description: row.description,
  type: row.type as Destination['type'],
  send_resolved: row.send_resolved,
  owner: row.owner,
  severity: row.severity,
  delivery_error: row.delivery_error,
  ...(row.type === 'EMAIL' && {
    to: row.mail_to!,
    from: row.mail_from!,
    smarthost: row.smarthost!,
    auth_username: row.auth_username,
    require_tls: row.require_tls!,
  }),
});

/** Returns the destination of a new receiver; 400 if it cannot be called from here. */
export function destinationOf(
  { settings }: Pick<Context, 'settings'>,
  input: AlertReceiverRequest,
  prefix = '',
): Destination {
  refuseForeignFields(input, prefix);
  if (input.type === 'EMAIL') return readMail(settings, input, prefix);
  const { webhook_url: url } = input;
  if (url === undefined) throw invalidField(`${prefix}webhook_url`, 'is required for type SLACK');
  checkProtectedUrl(url, `${prefix}webhook_url`, settings.allowedPrivateAddresses);
  return { type: 'SLACK', url };
}

/** Returns the destination that an edit gives; undefined if that stays. */
async function editedDestination(
  context: Context,
  present: queries.AlertReceiverRow,
  input: AlertReceiverEditRequest,
): Promise<Destination | undefined> {
  const { settings } = context;
  refuseForeignFields(input);
  if (input.type !== present.type)
    throw invalidField('type', `must be ${present.type}: create another receiver for ${input.type}`);
  if (input.type === 'SLACK') {
    const { webhook_url: url } = input;
    if (url == null) return undefined;
    checkProtectedUrl(url, 'webhook_url', settings.allowedPrivateAddresses);
    return { type: 'SLACK', url };
  }
  const destination = readMail(settings, input, '', await storedLogin(context, present, input));
  const { from, to, smarthost, server } = destination;
  const isSame =
    !input.auth_password &&
    from === present.mail_from &&
    to.join(',') === present.mail_to &&
    smarthost === present.smarthost &&
    server.requireTls === present.require_tls &&
    (server.login?.username ?? null) === present.auth_username;
  return isSame ? undefined : destination;
}

/** Returns the login of a receiver that gets mail. A password that the edit replaces is not decrypted: its key may be lost. */
async function storedLogin(
  context: Context,
  row: queries.AlertReceiverRow,
  { auth_password: given }: AlertReceiverEditRequest,
): Promise<StoredLogin> {
  const stored = given == null ? await openDestination(context, { ...row, receiver_id: row.id }) : undefined;
  const password = stored?.type === 'EMAIL' ? (stored.server.login?.password ?? null) : null;
  return { smarthost: row.smarthost, username: row.auth_username, password };
}

/** Throws 400 for fields of the other type, which would be ignored. */
function refuseForeignFields(input: AlertReceiverRequest | AlertReceiverEditRequest, prefix = ''): void {
  const names = input.type === 'EMAIL' ? (['webhook_url'] as const) : (Object.keys(mail) as (keyof typeof mail)[]);
  const field = names.find((name) => input[name] != null);
  if (field)
    throw invalidField(
      `${prefix}${field}`,
      `is not allowed with type ${input.type}: only ${input.type === 'EMAIL' ? 'a webhook' : 'mail'} has it`,
    );
}

/** Stores a receiver, its credentials encrypted; 409 beyond 100 in one organization. */
export async function createAlertReceiver(context: Context, input: AlertReceiverRequest) {
  const { organization_id: organizationId } = input;
  const destination = destinationOf(context, input);
  if (!(await lockOrganization(context.db, { organizationId }))) throw foreignOrganization('organization_id');
  const { receivers } = await queries.countAlertReceivers(context.db, { organizationId });
  if (receivers >= MAX_RECEIVERS)
    throw conflict(`An organization has at most ${MAX_RECEIVERS} alert receivers: delete one first.`);
  const id = newId();
  const row = await queries.insertAlertReceiver(context.db, {
    id,
    organization_id: organizationId,
    ...columnsOf(input),
    type: input.type,
    ...(await sealDestination(context, organizationId, id, destination)),
  });
  const view = toAlertReceiverView(row);
  await tell(context, 'CREATE', row, { after: view });
  return view;
}

/** Replaces a receiver; a URL, login, owner or severity that is left out stays. */
export async function editAlertReceiver(
  context: Context,
  present: queries.AlertReceiverRow,
  input: AlertReceiverEditRequest,
) {
  const { organization_id: organizationId, id } = present;
  const destination = await editedDestination(context, present, input);
  const row = await queries.updateAlertReceiver(context.db, { organizationId }, id, {
    ...columnsOf(input, present),
    ...(destination && {
      ...(await sealDestination(context, organizationId, id, destination)),
      // Another destination is another receiver: failures of the one before say nothing of it.
      failures: 0,
      paused_until: null,
      delivery_error: null,
    }),
  });
  const [before, after] = [toAlertReceiverView(present), toAlertReceiverView(row)];
  await tell(context, 'UPDATE', row, { before, after: { ...after, ...replacedBy(input, destination) } });
  return after;
}

/** Returns what an event tells of replaced credentials: where they go from now on, which is what an auditor asks. */
function replacedBy(input: AlertReceiverEditRequest, destination: Destination | undefined): object {
  if (destination?.type === 'SLACK') return { webhook_url_replaced: { host: hostOf(destination) } };
  if (destination && input.auth_password) return { auth_password_replaced: { smarthost: hostOf(destination) } };
  return {};
}

export async function deleteAlertReceiver(context: Context, row: queries.AlertReceiverRow): Promise<void> {
  await queries.deleteAlertReceiverRow(context.db, { organizationId: row.organization_id }, row.id);
  await tell(context, 'DELETE', row, { before: toAlertReceiverView(row) });
}

/** Sends a test message to a stored receiver. */
export async function testAlertReceiver(call: Call<queries.AlertReceiverRow>, text: string | undefined) {
  const { target } = call;
  const destination = await openDestination(call, { ...target, receiver_id: target.id });
  await sendTest(call, destination, { name: target.name, text });
}

const columnsOf = (
  input: AlertReceiverRequest | AlertReceiverEditRequest,
  present?: Pick<queries.AlertReceiverRow, 'owner' | 'severity'>,
) => ({
  name: input.name.trim(),
  description: input.description,
  send_resolved: input.send_resolved,
  owner: input.owner === undefined ? (present?.owner ?? null) : input.owner,
  severity: input.severity === undefined ? (present?.severity ?? null) : input.severity,
});

const tell = (
  context: Context,
  type: EventType,
  row: queries.AlertReceiverRow,
  states: { before?: unknown; after?: unknown },
): Promise<void> =>
  audit(context, {
    organizationId: row.organization_id,
    type,
    target: { type: 'ORGANIZATION', id: row.id, name: row.name, sub: 'ALERT_RECEIVER' },
    ...states,
  });
