import { AppError, badRequest, notFound } from '#kernel/errors.ts';
import { inTransaction } from '#platform/context.ts';
import { defineRoute, type BodyCall, type Call, type Route } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';
import { nameWithin, parseRegistry } from '#platform/oci/index.ts';
import {
  findRegistryWebhookById,
  noteCalled,
  REGISTRY_WEBHOOK,
  webhookSecret,
  type CalledWebhook,
} from '#resources/registry/index.ts';
import type { Kind } from '#services/kind.ts';
import { listFollowed } from '#services/moved-tags/followers.ts';
import { REST_SECONDS } from '#services/moved-tags/look.ts';
import { readPushedTags, type PushedTag } from '#services/moved-tags/notification.ts';
import { isProven } from '#services/moved-tags/proof.ts';
import { callForTags, REGISTRY_CALLS, type FollowedTag } from '#services/moved-tags/queries.ts';
import { CallWindows } from '#services/pushes/call-windows.ts';
import { FailedCalls } from '#services/pushes/failed-calls.ts';

const LONGEST_BODY = 1 << 20;
/** Right calls of one webhook in a minute: registries that tell of every pull call often. */
const MOST_RIGHT = 600;

type RegistryCall = Call<unknown, { registryWebhookId: string }, { token?: string }, string>;

interface Limits {
  failed: FailedCalls;
  right: CallWindows;
}

const RegistryCallReceipt = named(
  'RegistryCallReceipt',
  Type.Object({
    tags: Type.Integer({
      format: 'int32',
      description: 'Number of tags that services follow, and that the registry is asked for because of the call.',
    }),
  }),
);

/** Makes the route that registries call. The secret of the webhook is the credential. */
export function registryCallRoutes(kinds: Kind[]): Route[] {
  const limits: Limits = { failed: new FailedCalls(), right: new CallWindows() };
  return [
    defineRoute({
      id: 'receiveRegistryCall',
      method: 'POST',
      path: '/registryWebhook/{registryWebhookId}',
      tag: 'Container Registries',
      summary: 'Receive the notification of a container registry that an image was pushed',
      description:
        'Called by registries with the secret that `POST …/containerRegistry/{containerRegistryId}/webhook` answers: in `Authorization`, as the key of `X-Hub-Signature-256`, or as `token` of the address. The call is a hint: the registry is asked which image the tag stands for, and services with `auto_deploy` are deployed if it has moved.',
      action: 'public',
      query: Type.Object({
        token: Type.Optional(
          Type.String({ maxLength: 200, description: 'The secret, for registries that send no header.' }),
        ),
      }),
      body: Type.String({ maxLength: LONGEST_BODY }),
      bodyContentType: 'application/json',
      answer: { status: 202, body: RegistryCallReceipt },
      errors: [400, 404],
      // Calls without the secret take no turn of those that write.
      transaction: false,
      beforeBody: (call) => beginCall(call, limits),
      handler: (call) => receive(call, limits, kinds),
    }),
  ];
}

async function receive(call: RegistryCall, limits: Limits, kinds: Kind[]): Promise<{ tags: number }> {
  const webhook = await provenWebhook(call, limits);
  if (!webhook) throw notFound(REGISTRY_WEBHOOK);
  if (!limits.right.count(webhook.id, MOST_RIGHT)) throw tooMany();
  const pushed = await readPushedTags(webhook.organization_id, call.body);
  if (!pushed)
    throw badRequest(
      'The body is the notification of no registry that is known: send JSON of the Distribution registry, Docker Hub, GitHub, Gitea, Harbor, Quay, Azure, Amazon ECR or Google.',
    );
  return inTransaction(call, async ({ db, afterCommit }) => {
    await noteCalled(db, webhook);
    if (pushed.length === 0) return { tags: 0 };
    const { organization_id: organizationId, registry_id: registryId } = webhook;
    const followed = await listFollowed(db, kinds, { organizationId, registryId });
    const called = distinct(followed.filter((one) => isPushed(one, pushed, webhook.url)));
    if (called.length === 0) return { tags: 0 };
    await callForTags(db, called, REST_SECONDS);
    afterCommit(() => call.notify(REGISTRY_CALLS));
    return { tags: called.length };
  });
}

/** Finds the webhook of a call that knows its secret; undefined for any other call. */
async function provenWebhook(call: RegistryCall, { failed }: Limits): Promise<CalledWebhook | undefined> {
  const webhook = await findRegistryWebhookById(call.db, call.params.registryWebhookId);
  if (!webhook || !isProven(call.headers, call.query.token, await webhookSecret(call, webhook), call.body))
    return undefined;
  failed.accept(call.peer ?? '', webhook.id);
  return webhook;
}

/** Tells whether a followed tag is among the pushed ones, which have host and prefix of the registry or not. */
function isPushed({ image_name, tag }: FollowedTag, pushed: PushedTag[], registryUrl: string): boolean {
  const registry = parseRegistry(registryUrl);
  const name = nameWithin(registry, image_name);
  return pushed.some((one) => (one.tag ?? tag) === tag && nameWithin(registry, one.name) === name);
}

/** Returns each tag once: several services may follow it. */
const distinct = (tags: FollowedTag[]): FollowedTag[] => [
  ...new Map(tags.map((one) => [`${one.image_name}:${one.tag}`, one])).values(),
];

/** Counts a call before its body is read. Throws 429 for an address from which too many came that knew no secret. */
function beginCall({ params, peer = '' }: Pick<BodyCall, 'params' | 'peer'>, { failed }: Limits): void {
  if (!failed.begin(peer, params['registryWebhookId']!)) throw tooMany();
}

const tooMany = () =>
  new AppError('rate_limited', 'Too many calls: try again in 60 s.', { headers: { 'Retry-After': '60' } });
