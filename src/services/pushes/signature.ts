import { createHmac, hash, timingSafeEqual } from 'node:crypto';

export type CallHeaders = Record<string, string | string[] | undefined>;

/** Programs that call a git webhook. Forgejo calls as Gitea does. */
export type Sender = 'BITBUCKET' | 'GITEA' | 'GITHUB' | 'GITLAB';

/** Call of a git webhook, as its headers describe it. */
export interface WebhookCall {
  sender: Sender;
  /** Provider's name of the event. */
  event: string;
  /** Id of the call, which a repetition of it has as well; null if the provider names none. */
  deliveryId: string | null;
}

interface Dialect {
  event: string;
  /** Headers with the id of a call, the best first. */
  delivery: string[];
  /** Header with the signature, or with the secret itself. */
  proof: string;
  /** Right value of that header: the secret, or the HMAC of the body behind a label. */
  form: 'secret' | { label: string };
}

const HMAC = { label: '' };
const LABELLED = { label: 'sha256=' };

/** Headers by sender. Gitea comes first: it also sends the headers of GitHub. */
const DIALECTS: Record<Sender, Dialect> = {
  GITEA: { event: 'x-gitea-event', delivery: ['x-gitea-delivery'], proof: 'x-gitea-signature', form: HMAC },
  GITHUB: { event: 'x-github-event', delivery: ['x-github-delivery'], proof: 'x-hub-signature-256', form: LABELLED },
  GITLAB: {
    event: 'x-gitlab-event',
    delivery: ['idempotency-key', 'x-gitlab-event-uuid'],
    proof: 'x-gitlab-token',
    form: 'secret',
  },
  BITBUCKET: { event: 'x-event-key', delivery: ['x-request-uuid'], proof: 'x-hub-signature', form: LABELLED },
};

const LONGEST_ID = 255;

const headerOf = (headers: CallHeaders, name: string): string | undefined => [headers[name]].flat()[0] || undefined;

/** Reads who calls, and for what; undefined if the headers are of no known provider. */
export function callOf(headers: CallHeaders): WebhookCall | undefined {
  for (const [sender, { event, delivery }] of Object.entries(DIALECTS) as [Sender, Dialect][]) {
    const name = headerOf(headers, event);
    if (name === undefined) continue;
    const id = delivery.map((header) => headerOf(headers, header)).find((found) => found !== undefined);
    return { sender, event: name.slice(0, LONGEST_ID), deliveryId: id?.slice(0, LONGEST_ID) ?? null };
  }
  return undefined;
}

/** Checks the signature or the token of a call in constant time. The body may come in parts. */
export async function isProven(
  headers: CallHeaders,
  { sender }: WebhookCall,
  secret: string,
  body: Iterable<string> | AsyncIterable<Buffer>,
): Promise<boolean> {
  const { proof, form } = DIALECTS[sender];
  const right = form === 'secret' ? secret : `${form.label}${await hmacOf(secret, body)}`;
  return timingSafeEqual(hash('sha256', headerOf(headers, proof) ?? '', 'buffer'), hash('sha256', right, 'buffer'));
}

async function hmacOf(secret: string, body: Iterable<string> | AsyncIterable<Buffer>): Promise<string> {
  const hmac = createHmac('sha256', secret);
  for await (const part of body) hmac.update(part);
  return hmac.digest('hex');
}

/** Tells whether an event is a push to branches. */
export const isPush = ({ sender, event }: WebhookCall): boolean =>
  event === { BITBUCKET: 'repo:push', GITEA: 'push', GITHUB: 'push', GITLAB: 'Push Hook' }[sender];
