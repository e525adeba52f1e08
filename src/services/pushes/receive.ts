import { hash } from 'node:crypto';
import { AppError, notFound } from '#kernel/errors.ts';
import { isId, newId } from '#kernel/ids.ts';
import { inTransaction, systemContext } from '#platform/context.ts';
import { defineRoute, type BodyCall, type Call, type Route, type TooLargeCall } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';
import { Turns, type TurnRules } from '#platform/http/turns.ts';
import {
  findGitWebhookById,
  gitWebhookSecretPlace,
  hearGitWebhook,
} from '#services/capabilities/service/git-webhook/index.ts';
import { wantPolls } from '#services/pushes/branch-queries.ts';
import { receivePullRequest } from '#services/previews/receive.ts';
import { FailedCalls } from '#services/pushes/failed-calls.ts';
import * as queries from '#services/pushes/queries.ts';
import { callOf, isProven, isPush, type CallHeaders, type WebhookCall } from '#services/pushes/signature.ts';

interface ReceiverParts {
  failed: FailedCalls;
  turns: Turns;
}

type PushCall = Call<unknown, { gitWebhookId: string }, object, string>;

const LONGEST_BODY = 1 << 20;
/** Turns of bodies above the limit, which are read for their signatures: an organization has one at a time. */
const LARGE_CALLS: TurnRules = { things: 'large calls', limit: 2, shareOf: () => 1, hasOthersThan: () => true };
/** Calls of one repository that may wait to be read. */
const MOST_WAITING = 10_000;

const GitPushReceipt = named(
  'GitPushReceipt',
  Type.Object({
    is_new: Type.Boolean({
      description: 'False for a call that was taken before, and for an event that deploys nothing.',
    }),
  }),
);

/** Route that git providers call. The signature is the credential. */
export function gitPushRoutes(): Route[] {
  const failed = new FailedCalls();
  const parts = { failed, turns: new Turns(LARGE_CALLS) };
  return [
    defineRoute({
      id: 'receiveGitPush',
      method: 'POST',
      path: '/gitWebhook/{gitWebhookId}',
      tag: 'Git Webhooks',
      summary: 'Receive a push or a pull request from a git provider',
      description:
        'Called by GitHub, GitLab, Bitbucket, Gitea and Forgejo, signed with the secret that `POST /service/{serviceId}/gitWebhook/sync` registers there. A push or a pull request is stored before the answer. Afterwards a push deploys services with `auto_deploy`, and a pull request is shown by environments that make previews.',
      action: 'public',
      body: Type.String({ maxLength: LONGEST_BODY }),
      bodyContentType: 'application/json',
      answer: { status: 202, body: GitPushReceipt },
      errors: [404],
      // Calls without a signature take no turn of those that write.
      transaction: false,
      beforeBody: (call) => beginCall(call, failed),
      onTooLarge: (call) => noteLost(call, parts),
      handler: (call) => receive(call as unknown as PushCall, failed),
    }),
  ];
}

async function receive(call: PushCall, failed: FailedCalls) {
  const found = await provenCall(call, [call.body], failed);
  if (!found) throw notFound('Git webhook');
  const { webhook, said } = found;
  return inTransaction(call, async (context) => {
    const { db, afterCommit } = context;
    await hearGitWebhook(db, webhook);
    const received = await receivePullRequest(context, { webhook, said, body: call.body });
    if (received === 'full') throw tooMany(300);
    if (received !== undefined || !isPush(said)) return { is_new: received ?? false };
    if ((await queries.countWaiting(db, webhook, MOST_WAITING)) >= MOST_WAITING) throw tooMany(300);
    const digest = hash('sha256', call.body);
    const isNew = await queries.insertPush(db, {
      id: newId(),
      organization_id: webhook.organization_id,
      repository: webhook.repository,
      delivery_id: said.deliveryId ?? digest,
      body_digest: digest,
      event: said.sender,
      body: call.body,
    });
    if (isNew) afterCommit(() => call.notify(queries.GIT_PUSHES));
    return { is_new: isNew };
  });
}

/**
 * Makes the next poll of a repository due at once whose push is too large to be read. A call without the right signature changes nothing. Two bodies
 * are read at a time, of an organization one. Throws 503 for a call that gets no turn.
 */
async function noteLost(call: TooLargeCall, { failed, turns }: ReceiverParts): Promise<void> {
  const webhook = isId(call.params['gitWebhookId']!) ? await findGitWebhookById(call.db, call.params['gitWebhookId']!) : undefined; // prettier-ignore
  if (!webhook) return;
  const end = await turns.take(webhook.organization_id);
  try {
    const found = await provenCall(call, call.body, failed);
    if (!found) return;
    await inTransaction(systemContext(call, 'git'), async ({ db }) => {
      // Polls lock branches before their webhook.
      if (isPush(found.said)) await wantPolls(db, found.webhook);
      await hearGitWebhook(db, found.webhook);
    });
  } finally {
    end();
  }
}

type AnyCall = Pick<TooLargeCall, 'db' | 'vault' | 'headers' | 'peer'> & { params: Record<string, string> };

/** Counts a call before its body is read. Throws 429 for an address from which too many came that knew no secret. */
function beginCall({ params, peer = '' }: Pick<BodyCall, 'params' | 'peer'>, failed: FailedCalls): void {
  if (!failed.begin(peer, params['gitWebhookId']!)) throw tooMany(60);
}

/** Finds the webhook of a call that knows its secret; undefined for any other call. */
async function provenCall(call: AnyCall, body: Iterable<string> | AsyncIterable<Buffer>, failed: FailedCalls) {
  const said: WebhookCall | undefined = callOf(call.headers as CallHeaders);
  const id = call.params['gitWebhookId']!;
  const webhook = said && (await findGitWebhookById(call.db, id));
  if (!said || !webhook) return undefined;
  const place = gitWebhookSecretPlace(webhook.id);
  const secret = await call.vault.open(call.db, webhook.organization_id, place, webhook.secret);
  if (!(await isProven(call.headers, said, secret, body))) return undefined;
  failed.accept(call.peer ?? '', id);
  return { webhook, said };
}

const tooMany = (seconds: number) =>
  new AppError('rate_limited', `Too many calls: try again in ${seconds} s.`, {
    headers: { 'Retry-After': String(seconds) },
  });
