import { hash } from 'node:crypto';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { countWaitingCalls, insertCall, PULL_REQUEST_CALLS } from '#services/previews/call-queries.ts';
import { kindOf } from '#services/previews/payload.ts';
import type { WebhookCall } from '#services/pushes/signature.ts';

/** Calls of one repository that may wait to be read. */
const MOST_WAITING = 10_000;

interface ReceivedCall {
  webhook: { organization_id: string; repository: string };
  said: WebhookCall;
  body: string;
}

/**
 * Stores a verified call about a pull request. Returns whether it is new, `full` if too many calls wait, and undefined for a call about
 * something else.
 */
export async function receivePullRequest(
  context: Context,
  { webhook, said, body }: ReceivedCall,
): Promise<boolean | 'full' | undefined> {
  const kind = kindOf(said, body);
  if (!kind) return undefined;
  if ((await countWaitingCalls(context.db, webhook, MOST_WAITING)) >= MOST_WAITING) return 'full';
  const digest = hash('sha256', body);
  const isNew = await insertCall(context.db, {
    id: newId(),
    organization_id: webhook.organization_id,
    repository: webhook.repository,
    delivery_id: said.deliveryId ?? digest,
    body_digest: digest,
    sender: said.sender,
    is_comment: kind === 'comment',
    body,
  });
  if (isNew) context.afterCommit(() => context.notify(PULL_REQUEST_CALLS));
  return isNew;
}
