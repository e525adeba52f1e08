import { Webhook as Signer } from 'standardwebhooks';
import { cut, escapeSlackMarkup, onOneLine } from '#kernel/chat-text.ts';
import type { DeploymentOutboxEvent } from '#platform/events/outbox.ts';

/**
 * Returns the body of a call: `{event_type, payload}`, or `{text}` for Slack (docs/contributing/rules.md 41). `name` is the event as
 * subscribed.
 */
export function bodyOf(kind: string, name: string, event: DeploymentOutboxEvent, baseUrl: string): string {
  return JSON.stringify(
    kind === 'SLACK' ? { text: slackText(event) } : { event_type: name, payload: payloadOf(event, baseUrl) },
  );
}

function payloadOf(event: DeploymentOutboxEvent, baseUrl: string) {
  const { organization, project, environment, service } = event;
  return {
    [`${service.type.toLowerCase()}_id`]: service.id,
    service_id: service.id,
    service_type: service.type,
    service_name: service.name,
    organization_id: organization.id,
    organization_name: organization.name,
    project_id: project.id,
    project_name: project.name,
    environment_id: environment.id,
    environment_name: environment.name,
    environment_mode: environment.mode,
    deployment_request_id: event.deployment_request_id,
    status: event.status,
    ...(event.error ? { error: { ...event.error, log_url: logUrlOf(event, baseUrl) } } : {}),
    generation: event.generation,
    sequence: event.sequence,
  };
}

/** Characters of a reason that a message to Slack has. */
const SLACK_REASON = 300;

const HAPPENED: Record<DeploymentOutboxEvent['type'], string> = {
  DEPLOYMENT_STARTED: 'has started',
  DEPLOYMENT_SUCCESSFUL: 'has succeeded',
  DEPLOYMENT_FAILURE: 'has failed',
  DEPLOYMENT_CANCELLED: 'was cancelled',
};

/** Returns the URL of the deployment's log, below the address of this installation as far as the settings name it. */
const logUrlOf = ({ environment, generation }: DeploymentOutboxEvent, baseUrl: string): string =>
  `${baseUrl}/environment/${environment.id}/logs?version=${environment.id}-${generation}`;

function slackText({
  type,
  organization,
  project,
  environment,
  service,
  status,
  error,
}: DeploymentOutboxEvent): string {
  const place = [organization, project, environment].map(({ name }) => shown(name)).join(' / ');
  return `Deployment of *${shown(service.name)}* (${place}) ${HAPPENED[type]}: ${status}${error ? ` (${shown(cut(error.cause?.summary ?? error.message, SLACK_REASON))})` : ''}`;
}

/** Returns a text that people chose as Slack shows it: no markup, mention or link, and no mark that turns the line around. */
const shown = (text: string): string => escapeSlackMarkup(onOneLine(text));

/**
 * Headers of a call by the Standard Webhooks specification; without a secret there is no signature. A secret is
 * `whsec_<base64>`, or any text, whose bytes are then the key. Text that is base64 by chance is signed with both keys, the text
 * and what it stands for, because verifiers of either reading are about; the header takes several signatures.
 */
export function headersOf(id: string, at: Date, body: string, secret: string | undefined): Record<string, string> {
  const keys = secret === undefined ? [] : keysOf(secret);
  const signatures = keys.map((key) => new Signer(key, { format: 'raw' }).sign(id, at, body));
  return {
    'content-type': 'application/json',
    'user-agent': 'Quarterdeck-Webhook/1',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    ...(signatures.length > 0 ? { 'webhook-signature': signatures.join(' ') } : {}),
  };
}

const PREFIX = 'whsec_';
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function keysOf(secret: string): Buffer[] {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const decoded = encoded !== '' && BASE64.test(encoded) ? [Buffer.from(encoded, 'base64')] : [];
  if (secret.startsWith(PREFIX) && decoded.length > 0) return decoded;
  return [Buffer.from(secret), ...decoded];
}
