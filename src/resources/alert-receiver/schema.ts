import { DateTime, ListOf, Name, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { SEVERITIES } from '#resources/alert-receiver/severity.ts';

const Kind = OneOf(['SLACK', 'EMAIL'], {
  description:
    'SLACK posts to a webhook: in the form of Discord or Teams where the URL is theirs, otherwise `{text}`. EMAIL sends mail through the server in `smarthost`. The type of a stored receiver stays.',
});
const Short = Type.Optional(Nullable(Type.String({ maxLength: 255 })));
const WebhookUrl = Type.String({
  minLength: 1,
  maxLength: 2048,
  writeOnly: true,
  description:
    'https, because the URL is a credential; http only to addresses in QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES. Stored encrypted and never answered; required for SLACK.',
});

const Severity = Nullable(
  Type.String({
    maxLength: 255,
    description: `Least severity of the rules whose messages it gets: ${SEVERITIES.join(', ')}, in upper or lower case. With null, or any other text, it gets all.`,
  }),
);

const fields = {
  name: Name,
  description: Type.String({ maxLength: 2000 }),
  type: Kind,
  send_resolved: Type.Boolean({ description: 'Whether the end of an alert is told as well.' }),
  owner: Short,
  severity: Type.Optional(Severity),
};
const To = Type.String({
  maxLength: 5_100,
  description: 'One or more addresses, separated by commas, at most 20; required for EMAIL.',
});
const From = Type.String({ maxLength: 254, description: 'Address of the sender; required for EMAIL.' });
const Smarthost = Type.String({
  maxLength: 255,
  description:
    'Mail server as host:port; required for EMAIL. The port is 25, 465, 587 or 2525; others are for addresses in QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES.',
});
const RequireTls = Type.Boolean({
  description:
    'Whether a server without TLS gets no mail; required for EMAIL, and true with a login unless the port is 465, where TLS comes first. STARTTLS that a server offers is always used, and certificates are verified.',
});

/** Fields of EMAIL, which a webhook would ignore. */
export const mail = {
  to: Type.Optional(To),
  from: Type.Optional(From),
  smarthost: Type.Optional(Smarthost),
  auth_username: Short,
  auth_password: Type.Optional(
    Nullable(
      Type.String({
        maxLength: 1024,
        writeOnly: true,
        description:
          'Password of the login, for EMAIL with auth_username. Stored encrypted and never answered; an edit with null or without it keeps it, if smarthost and auth_username stay.',
      }),
    ),
  ),
  require_tls: Type.Optional(RequireTls),
};
const MailFields = Type.Object(mail);
export type MailFields = Static<typeof MailFields>;

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

/** A receiver as it is answered: without its webhook or password. The fields of mail are those of type EMAIL. */
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
    severity: Severity,
    delivery_error: Nullable(
      Type.String({
        description:
          'Why the last message of an alert did not arrive, or which recipient of a mail was refused; null once one has arrived everywhere.',
      }),
    ),
    to: Type.Optional(Type.String({ description: 'Addresses, separated by commas.' })),
    from: Type.Optional(Type.String()),
    smarthost: Type.Optional(Type.String()),
    auth_username: Type.Optional(Nullable(Type.String())),
    require_tls: Type.Optional(Type.Boolean()),
  }),
);
export const AlertReceiverList = ListOf(AlertReceiver);
