import { badGateway, conflict, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { audit, type EventType } from '#platform/events/audit.ts';
import { checkProtectedUrl, createHttpClient, OutgoingError } from '#platform/http-client/index.ts';
import type { Call } from '#platform/http/route.ts';
import { foreignOrganization } from '#resources/organization/index.ts';
import * as queries from '#resources/alert-receiver/queries.ts';
import { mail, type AlertReceiverEditRequest, type AlertReceiverRequest } from '#resources/alert-receiver/schema.ts';

/** Largest number of receivers of an organization. */
const MAX_RECEIVERS = 100;
/** Bytes of a refusal that are read. */
const MAX_ANSWER = 16 * 1024;

/** Additional data that binds a stored URL to its row. */
const sealedAs = (id: string): string => `alert_receiver/${id}/webhook_url`;

/** A receiver as it is answered: never its URL. */
export const toAlertReceiverView = (row: queries.AlertReceiverRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  description: row.description,
  type: row.type as 'SLACK',
  send_resolved: row.send_resolved,
  owner: row.owner,
  severity: row.severity,
});

/** Returns the URL of a new receiver; 400 if it cannot be called from here. */
export function urlOf(context: Pick<Context, 'settings'>, input: AlertReceiverRequest, prefix = ''): string {
  refuseMail(input, prefix);
  if (input.webhook_url === undefined) throw invalidField(`${prefix}webhook_url`, 'is required for type SLACK');
  checkProtectedUrl(input.webhook_url, `${prefix}webhook_url`, context.settings.allowedPrivateAddresses);
  return input.webhook_url;
}

/** Throws 400 for fields of mail, which a webhook would ignore. */
function refuseMail(input: AlertReceiverRequest | AlertReceiverEditRequest, prefix = ''): void {
  if (input.type === 'EMAIL')
    throw invalidField(
      `${prefix}type`,
      'must be SLACK: this installation sends no mail; SLACK also fits services that take the form of its webhooks',
    );
  const field = (Object.keys(mail) as (keyof typeof mail)[]).find((name) => input[name] != null);
  if (field) throw invalidField(`${prefix}${field}`, 'is not allowed with type SLACK: only mail has it');
}

/** Stores a receiver, its URL encrypted; 409 beyond 100 in one organization. */
export async function createAlertReceiver(context: Context, input: AlertReceiverRequest) {
  const { organization_id: organizationId } = input;
  const url = urlOf(context, input);
  if (!(await queries.lockOrganization(context.db, { organizationId }))) throw foreignOrganization('organization_id');
  const { receivers } = await queries.countAlertReceivers(context.db, { organizationId });
  if (receivers >= MAX_RECEIVERS)
    throw conflict(`An organization has at most ${MAX_RECEIVERS} alert receivers: delete one first.`);
  const id = newId();
  const row = await queries.insertAlertReceiver(context.db, {
    id,
    organization_id: organizationId,
    ...columnsOf(input),
    type: input.type,
    webhook_url: await context.vault.seal(context.db, organizationId, sealedAs(id), url),
  });
  const view = toAlertReceiverView(row);
  await tell(context, 'CREATE', row, { after: view });
  return view;
}

/** Replaces a receiver; a URL, owner or severity that is left out stays. */
export async function editAlertReceiver(
  context: Context,
  present: queries.AlertReceiverRow,
  input: AlertReceiverEditRequest,
) {
  refuseMail(input);
  const { organization_id: organizationId, id } = present;
  const url = input.webhook_url ?? undefined;
  if (url !== undefined) checkProtectedUrl(url, 'webhook_url', context.settings.allowedPrivateAddresses);
  const row = await queries.updateAlertReceiver(context.db, { organizationId }, id, {
    ...columnsOf(input, present),
    ...(url === undefined
      ? {}
      : { webhook_url: await context.vault.seal(context.db, organizationId, sealedAs(id), url) }),
  });
  const [before, after] = [toAlertReceiverView(present), toAlertReceiverView(row)];
  // The path of the URL is the secret; where messages go from now on is what an auditor asks.
  const replaced = url === undefined ? {} : { webhook_url_replaced: { host: new URL(url).host } };
  await tell(context, 'UPDATE', row, { before, after: { ...after, ...replaced } });
  return after;
}

export async function deleteAlertReceiver(context: Context, row: queries.AlertReceiverRow): Promise<void> {
  await queries.deleteAlertReceiverRow(context.db, { organizationId: row.organization_id }, row.id);
  await tell(context, 'DELETE', row, { before: toAlertReceiverView(row) });
}

/** Sends a test message to a stored receiver. */
export async function testAlertReceiver(call: Call<queries.AlertReceiverRow>, message: string | undefined) {
  const { db, vault, target } = call;
  const url = await vault.open(db, target.organization_id, sealedAs(target.id), target.webhook_url);
  await sendTest(call, url, message ?? testMessage(target.name));
}

export const testMessage = (name: string): string => `Test of the alert receiver ${name}: messages arrive.`;

/** Posts a text in the form of Slack's webhooks; 502 with the reason if it does not arrive. */
export async function sendTest({ settings, signal }: Pick<Call, 'settings' | 'signal'>, url: string, text: string) {
  const http = createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses });
  try {
    const { status } = await http.request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'Quarterdeck-Alert/1' },
      body: JSON.stringify({ text }),
      maxBytes: MAX_ANSWER,
      secretUrl: true,
      signal,
    });
    if (status < 200 || status > 299)
      throw badGateway(`The test message was refused: ${new URL(url).host} answered ${status}.`);
  } catch (error) {
    if (error instanceof OutgoingError) throw badGateway(`The test message was not sent: ${error.message}`, error);
    throw error;
  }
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
