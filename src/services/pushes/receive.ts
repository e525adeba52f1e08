import { hash } from 'node:crypto';
import { AppError, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';
import {
  findGitWebhookById,
  gitWebhookSecretPlace,
  hearGitWebhook,
} from '#services/capabilities/service/git-webhook/index.ts';
import { FailedCalls } from '#services/pushes/failed-calls.ts';
import * as queries from '#services/pushes/queries.ts';
import { callOf, isProven, isPush, type CallHeaders, type WebhookCall } from '#services/pushes/signature.ts';

type PushCall = Call<unknown, { gitWebhookId: string }, object, string>;

const LONGEST_BODY = 1 << 20;
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
  return [
    defineRoute({
      id: 'receiveGitPush',
      method: 'POST',
      path: '/gitWebhook/{gitWebhookId}',
      tag: 'Git Webhooks',
      summary: 'Receive a push from a git provider',
      description:
        'Called by GitHub, GitLab, Bitbucket, Gitea and Forgejo, signed with the secret that `POST /service/{serviceId}/gitWebhook/sync` registers there. A push is stored before the answer, and deploys services with `auto_deploy` afterwards.',
      action: 'public',
      body: Type.String({ maxLength: LONGEST_BODY }),
      bodyContentType: 'application/json',
      answer: { status: 202, body: GitPushReceipt },
      errors: [404],
      handler: (call) => receive(call as unknown as PushCall, failed),
    }),
  ];
}

async function receive(call: PushCall, failed: FailedCalls) {
  const { gitWebhookId: id } = call.params;
  const from = call.peer ?? '';
  if (failed.refuses(from, id)) throw tooMany(60);
  const found = await provenCall(call);
  if (!found) {
    failed.count(from);
    throw notFound('Git webhook');
  }
  failed.accept(from, id);
  const { webhook, said } = found;
  await hearGitWebhook(call.db, webhook);
  if (!isPush(said)) return { is_new: false };
  if ((await queries.countWaiting(call.db, webhook, MOST_WAITING)) >= MOST_WAITING) throw tooMany(300);
  const digest = hash('sha256', call.body);
  const isNew = await queries.insertPush(call.db, {
    id: newId(),
    organization_id: webhook.organization_id,
    repository: webhook.repository,
    delivery_id: said.deliveryId ?? digest,
    body_digest: digest,
    event: said.sender,
    body: call.body,
  });
  if (isNew) call.afterCommit(() => call.notify(queries.GIT_PUSHES));
  return { is_new: isNew };
}

/** Finds the webhook of a call that knows its secret; undefined for any other call. */
async function provenCall(call: PushCall) {
  const said: WebhookCall | undefined = callOf(call.headers as CallHeaders);
  const webhook = await findGitWebhookById(call.db, call.params.gitWebhookId);
  if (!said || !webhook) return undefined;
  const place = gitWebhookSecretPlace(webhook.id);
  const secret = await call.vault.open(call.db, webhook.organization_id, place, webhook.secret);
  return isProven(call.headers as CallHeaders, said, secret, call.body) ? { webhook, said } : undefined;
}

const tooMany = (seconds: number) =>
  new AppError('rate_limited', `Too many calls: try again in ${seconds} s.`, {
    headers: { 'Retry-After': String(seconds) },
  });
