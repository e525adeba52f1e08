import { defineRoute, type Route } from '#platform/http/route.ts';
import { GitWebhookStatus } from '#services/capabilities/service/git-webhook/schema.ts';
import { gitWebhookStatus, syncGitWebhook } from '#services/capabilities/service/git-webhook/service.ts';
import type { Kind } from '#services/kind.ts';
import { serviceTarget } from '#services/service/target.ts';

const target = serviceTarget('serviceId', 'Service');
const tag = 'Service Main Calls';

/** The webhook by which a provider tells of pushes to a service's repository. */
export const gitWebhookRoutes = (kinds: Kind[]): Route[] => [
  defineRoute({
    id: 'getServiceGitWebhookStatus',
    method: 'GET',
    path: '/service/{serviceId}/gitWebhookStatus',
    tag,
    summary: "Ask the git provider for the webhook of a service's repository",
    description: 'Answers whether the webhook is there and active, and what is missing if not.',
    target,
    action: 'service.read',
    answer: { status: 200, body: GitWebhookStatus },
    errors: [400],
    transaction: false,
    handler: (call) => gitWebhookStatus(call, kinds),
  }),
  defineRoute({
    id: 'syncServiceGitWebhook',
    method: 'POST',
    path: '/service/{serviceId}/gitWebhook/sync',
    tag,
    summary: "Register the webhook of a service's repository at the git provider",
    description:
      'Creates the webhook with the git token of the service, or repairs it. All services of an organization that are built from the repository share it.',
    target,
    action: 'service.edit',
    answer: { status: 200, body: GitWebhookStatus },
    errors: [400, 502],
    transaction: false,
    handler: (call) => syncGitWebhook(call, kinds),
  }),
];
