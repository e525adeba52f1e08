import { named, OneOf, Type } from '#platform/http/schema.ts';
import { GitProvider } from '#services/sources/git.ts';

const GIT_WEBHOOK_STATUSES = ['ACTIVE', 'NOT_CONFIGURED', 'MISCONFIGURED', 'UNABLE_TO_VERIFY'] as const;
export type GitWebhookState = (typeof GIT_WEBHOOK_STATUSES)[number];

export const GitWebhookStatus = named(
  'GitWebhookStatus',
  Type.Object({
    status: OneOf(GIT_WEBHOOK_STATUSES),
    provider: GitProvider,
    missing_events: Type.Optional(
      Type.Array(Type.String(), { description: 'Events that the webhook should send but does not.' }),
    ),
    message: Type.Optional(Type.String({ description: 'What is missing, and what would mend it.' })),
  }),
);
