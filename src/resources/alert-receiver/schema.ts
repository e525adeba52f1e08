import { DateTime, ListOf, Name, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';

const Kind = OneOf(['SLACK', 'EMAIL'], {
  description: 'SLACK posts `{text}` to a webhook. EMAIL is refused: this installation sends no mail.',
});
const Short = Type.Optional(Nullable(Type.String({ maxLength: 255 })));
const Email = Type.Optional(Type.String({ format: 'email', maxLength: 320 }));
const WebhookUrl = Type.String({
  minLength: 1,
  maxLength: 2048,
  writeOnly: true,
  description:
    'https, because the URL is a credential; http only to addresses in QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES. Stored encrypted and never answered; required for SLACK.',
});

const fields = {
  name: Name,
  description: Type.String({ maxLength: 2000 }),
  type: Kind,
  send_resolved: Type.Boolean({ description: 'Whether the end of an alert is told as well.' }),
  owner: Short,
  severity: Short,
};
/** Fields of EMAIL, which is refused with its reason. */
export const mail = {
  to: Email,
  from: Email,
  smarthost: Type.Optional(Type.String({ maxLength: 255 })),
  auth_username: Short,
  auth_password: Type.Optional(Nullable(Type.String({ maxLength: 1024, writeOnly: true }))),
  require_tls: Type.Optional(Type.Boolean()),
};

export const AlertReceiverRequest = named(
  'AlertReceiverCreationRequest',
  Type.Object({ organization_id: Uuid, ...fields, webhook_url: Type.Optional(WebhookUrl), ...mail }),
);
export type AlertReceiverRequest = Static<typeof AlertReceiverRequest>;

export const AlertReceiverEditRequest = named(
  'AlertReceiverEditRequest',
  Type.Object({ ...fields, webhook_url: Type.Optional(Nullable(WebhookUrl)), ...mail }),
);
export type AlertReceiverEditRequest = Static<typeof AlertReceiverEditRequest>;

const Message = Type.Optional(
  Type.String({ maxLength: 2000, description: 'Text that is sent; a sentence of its own without it.' }),
);
export const ValidateRequest = named('AlertReceiverValidationRequest', Type.Object({ message: Message }));
export const ValidateNewRequest = named(
  'AlertReceiverCreationValidationRequest',
  Type.Object({ alert_receiver: AlertReceiverRequest, message: Message }),
);

/** A receiver as it is answered; the fields of mail are there for clients that know them. */
export const AlertReceiver = named(
  'AlertReceiver',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Type.String(),
    type: OneOf(['SLACK', 'EMAIL']),
    send_resolved: Type.Boolean(),
    owner: Nullable(Type.String()),
    severity: Nullable(Type.String()),
    to: Type.Optional(Type.String()),
    from: Type.Optional(Type.String()),
    smarthost: Type.Optional(Type.String()),
    auth_username: Type.Optional(Nullable(Type.String())),
    require_tls: Type.Optional(Type.Boolean()),
  }),
);
export const AlertReceiverList = ListOf(AlertReceiver);
