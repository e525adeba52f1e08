/** Names of webhook events in the reference's spelling, which answers use (docs/contributing/rules.md 40). */
export const WEBHOOK_EVENTS = [
  'DEPLOYMENT_STARTED',
  'DEPLOYMENT_CANCELLED',
  'DEPLOYMENT_FAILURE',
  'DEPLOYMENT_SUCCESSFUL',
] as const;
export type WebhookEventName = (typeof WEBHOOK_EVENTS)[number];

/** Spellings of the specification (docs/contributing/rules.md, *Webhooks*) with the reference's spelling of each. */
const SPELLINGS: Record<string, WebhookEventName> = {
  DEPLOYMENT_SUCCEEDED: 'DEPLOYMENT_SUCCESSFUL',
  DEPLOYMENT_FAILED: 'DEPLOYMENT_FAILURE',
};

/** Every name that a request may subscribe to. */
export const SUBSCRIBABLE_EVENTS = [...WEBHOOK_EVENTS, ...(Object.keys(SPELLINGS) as (keyof typeof SPELLINGS)[])];

const referenceName = (name: string): WebhookEventName => SPELLINGS[name] ?? (name as WebhookEventName);

/** Events that a webhook is subscribed to, and in the same order the spelling in which each was requested. */
export interface Subscription {
  events: WebhookEventName[];
  subscribed: string[];
}

/**
 * Reads the names of a request. An event named twice counts once. A client that sends back what answers showed it, which is the
 * reference's spelling, keeps the spelling that was subscribed in before.
 */
export function readSubscription(names: string[], before?: { events: string[]; subscribed: string[] }): Subscription {
  const spelling = new Map<WebhookEventName, string>();
  for (const name of names) {
    const event = referenceName(name);
    const known = before?.subscribed[before.events.indexOf(event)];
    const kept = name === event ? (known ?? name) : name;
    if (!spelling.has(event) || name !== event) spelling.set(event, kept);
  }
  return { events: [...spelling.keys()], subscribed: [...spelling.values()] };
}
