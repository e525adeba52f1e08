import { ENVIRONMENT_MODES } from '#platform/access/principal.ts';
import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { SUBSCRIBABLE_EVENTS, WEBHOOK_EVENTS } from '#resources/webhook/events.ts';

const KINDS = ['STANDARD', 'SLACK'] as const;

export const WebhookRequest = named(
  'OrganizationWebhookRequest',
  Type.Object({
    kind: Type.Optional(OneOf(KINDS, { description: 'STANDARD when left out; SLACK sends `{text}`.' })),
    target_url: Type.String({
      minLength: 1,
      maxLength: 2048,
      description: 'URL that begins with https:// or http://; not a private address, unless the operator allows it.',
    }),
    target_secret: Type.Optional(
      Type.String({
        maxLength: 1024,
        description:
          'Signs each call (HMAC-SHA-256, Standard Webhooks headers); never answered. Left out in an edit it stays, empty it is removed.',
      }),
    ),
    description: Type.Optional(Type.String({ maxLength: 2000 })),
    enabled: Type.Optional(Type.Boolean({ description: 'true when left out at creation.' })),
    events: Type.Array(OneOf(SUBSCRIBABLE_EVENTS), { minItems: 1, maxItems: 20 }),
    project_names_filter: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
        maxItems: 1000,
        description: 'Names of projects, compared without case, that calls are made for; all when empty.',
      }),
    ),
    environment_types_filter: Type.Optional(
      Type.Array(OneOf(ENVIRONMENT_MODES), {
        maxItems: 20,
        description: 'Modes of environments that calls are made for; all when empty.',
      }),
    ),
  }),
);
export type WebhookRequest = Static<typeof WebhookRequest>;

export const Webhook = named(
  'OrganizationWebhook',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    kind: OneOf(KINDS),
    target_url: Type.String(),
    target_secret_set: Type.Boolean(),
    description: Type.String(),
    enabled: Type.Boolean(),
    events: Type.Array(OneOf(WEBHOOK_EVENTS)),
    subscribed_events: Type.Array(Type.String(), {
      description: 'The events in the spelling that was subscribed in, which calls use as `event_type`.',
    }),
    project_names_filter: Type.Array(Type.String()),
    environment_types_filter: Type.Array(OneOf(ENVIRONMENT_MODES)),
  }),
);

export const WebhookList = ListOf(Webhook);

const WebhookEvent = named(
  'WebhookEvent',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    kind: OneOf(KINDS),
    matched_event: OneOf(WEBHOOK_EVENTS),
    target_url_used: Type.String({ format: 'uri' }),
    request: Type.Object({}, { additionalProperties: true, description: 'Body that was sent.' }),
    target_response_status_code: Type.Integer({
      format: 'int32',
      description: '0 where there was no HTTP answer; the body then says why.',
    }),
    target_response_body: Nullable(Type.String()),
    delivery_id: Type.String({
      format: 'uuid',
      description: 'The `webhook-id` of the call, the same in all its attempts.',
    }),
    attempt: Type.Integer({ description: 'Number of the attempt within its delivery, from 1.' }),
    ended_at: DateTime,
  }),
);

export const WebhookEventList = ListOf(WebhookEvent);

export const WebhookDelivery = named(
  'WebhookDelivery',
  Type.Object({
    id: Type.String({ format: 'uuid', description: 'The `webhook-id` of the call.' }),
    webhook_id: Uuid,
    created_at: DateTime,
    matched_event: OneOf(WEBHOOK_EVENTS),
    state: OneOf(['PENDING', 'DELIVERED', 'FAILED', 'CANCELED']),
    attempts: Type.Integer(),
    next_attempt_at: Nullable(DateTime),
  }),
);
