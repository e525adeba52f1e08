import { DateTime, NAME_PATTERN, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';

/** Limits of a password, in characters. The upper one bounds the work of a digest. */
const PASSWORD_LENGTH = { min: 12, max: 256 } as const;

const NAME = '^[A-Za-z0-9][A-Za-z0-9._@+-]*$';
export const Name = Type.String({
  minLength: 2,
  maxLength: 200,
  pattern: NAME,
  description: 'Name to sign in with, unique in the installation; upper and lower case are the same.',
});
const Password = Type.String({ minLength: PASSWORD_LENGTH.min, maxLength: PASSWORD_LENGTH.max });
// What is compared may have any form: a refusal of its form would tell which forms there are.
const GivenPassword = Type.String({ maxLength: 1000 });
export const LinkSecret = Type.String({ minLength: 1, maxLength: 200, description: 'Text behind the # of the link.' });
export const Names = {
  first_name: Type.Optional(Type.String({ maxLength: 100, pattern: NAME_PATTERN })),
  last_name: Type.Optional(Type.String({ maxLength: 100, pattern: NAME_PATTERN })),
};

export const SignInRequest = named(
  'SignInRequest',
  Type.Object({ name: Type.String({ minLength: 1, maxLength: 200 }), password: GivenPassword }),
);

const Session = named(
  'Session',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    last_used_at: Type.String({ format: 'date-time', description: 'Written down at most every 5 minutes.' }),
    expires_at: DateTime,
    user_agent: Type.String(),
    address: Type.String({ description: 'Address that signed in.' }),
    current: Type.Boolean({ description: 'True for the session of this request.' }),
  }),
);
export const SessionList = named('SessionList', Type.Object({ results: Type.Array(Session) }));

export const SignedIn = named(
  'SignedIn',
  Type.Object({
    token: Type.String({ description: 'Shown only now. It is sent as `Authorization: Bearer <token>`.' }),
    session_id: Uuid,
    user_id: Uuid,
    name: Type.String(),
    expires_at: DateTime,
  }),
);

export const LinkSecretRequest = named('LinkSecretRequest', Type.Object({ secret: LinkSecret }));

export const SignInLink = named(
  'SignInLink',
  Type.Object({
    purpose: OneOf(['INVITATION', 'PASSWORD', 'ADDRESS']),
    name: Nullable(Type.String({ description: 'Name that the person signs in with, null if they choose one.' })),
    expires_at: DateTime,
    email: Type.Optional(Type.String({ description: 'Address that was invited, or is confirmed.' })),
    organization_name: Type.Optional(Type.String()),
    role_name: Type.Optional(Type.String()),
    inviter: Type.Optional(Type.String()),
    mailed: Type.Optional(
      Type.Boolean({
        description: 'True for the link that was mailed to the address: links for a forgotten password go there then.',
      }),
    ),
  }),
);

export const RecoveryRequest = named(
  'RecoveryRequest',
  Type.Object({ email: Type.String({ minLength: 3, maxLength: 320, description: 'Address of the account.' }) }),
);

export const RedeemRequest = named(
  'RedeemRequest',
  Type.Object({ secret: LinkSecret, name: Type.Optional(Name), password: Password, ...Names }),
);

export const PasswordChangeRequest = named(
  'PasswordChangeRequest',
  Type.Object({
    current_password: Type.Optional(
      Type.String({ maxLength: 1000, description: 'Required where you have a password, and not allowed before.' }),
    ),
    password: Password,
  }),
);
