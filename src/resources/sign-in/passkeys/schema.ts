import { DateTime, NAME_PATTERN, named, Nullable, Type, Uuid } from '#platform/http/schema.ts';
import { LinkSecret, Name, Names } from '#resources/sign-in/schema.ts';

const Base64Url = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: '^[A-Za-z0-9_-]+$' });

// 1,023 bytes at most (Web Authentication Level 3 §4).
const CredentialId = Base64Url(1364);
const PublicKey = Type.Literal('public-key');
const Transport = Type.String({ minLength: 1, maxLength: 30, pattern: '^[a-z-]+$' });
const Transports = Type.Array(Transport, { maxItems: 10 });
const Challenge = Type.String({ description: 'Answered once, by the browser that asked, within 5 minutes.' });

export const PasskeyCreationOptions = named(
  'PasskeyCreationOptions',
  Type.Object(
    {
      rp: Type.Object({ id: Type.String(), name: Type.String() }),
      user: Type.Object({ id: Type.String(), name: Type.String(), displayName: Type.String() }),
      challenge: Challenge,
      pubKeyCredParams: Type.Array(Type.Object({ type: PublicKey, alg: Type.Integer() })),
      timeout: Type.Integer({ description: 'Milliseconds.' }),
      excludeCredentials: Type.Array(Type.Object({ type: PublicKey, id: Type.String(), transports: Transports })),
      authenticatorSelection: Type.Object({
        residentKey: Type.Literal('required'),
        requireResidentKey: Type.Boolean(),
        userVerification: Type.Literal('required'),
      }),
      attestation: Type.Literal('none'),
    },
    { description: 'Argument of `PublicKeyCredential.parseCreationOptionsFromJSON` in a browser.' },
  ),
);

export const PasskeyRequestOptions = named(
  'PasskeyRequestOptions',
  Type.Object(
    {
      challenge: Challenge,
      timeout: Type.Integer({ description: 'Milliseconds.' }),
      rpId: Type.String(),
      userVerification: Type.Literal('required'),
    },
    { description: 'Argument of `PublicKeyCredential.parseRequestOptionsFromJSON` in a browser.' },
  ),
);

const CreatedCredential = named(
  'CreatedPasskeyCredential',
  Type.Object(
    {
      id: CredentialId,
      rawId: CredentialId,
      type: PublicKey,
      response: Type.Object({
        clientDataJSON: Base64Url(8192),
        attestationObject: Base64Url(32_768),
        transports: Type.Optional(Transports),
      }),
    },
    { description: 'These fields of `toJSON()` of what `navigator.credentials.create` answers; others are ignored.' },
  ),
);

const UsedCredential = named(
  'UsedPasskeyCredential',
  Type.Object(
    {
      id: CredentialId,
      rawId: CredentialId,
      type: PublicKey,
      response: Type.Object({
        clientDataJSON: Base64Url(8192),
        authenticatorData: Base64Url(8192),
        signature: Base64Url(8192),
        userHandle: Type.Optional(Nullable(Type.String({ maxLength: 100 }))),
      }),
    },
    { description: 'These fields of `toJSON()` of what `navigator.credentials.get` answers; others are ignored.' },
  ),
);

const PasskeyName = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: NAME_PATTERN,
  description: 'Name by which its owner knows it, such as that of the device.',
});

export const PasskeySignInRequest = named('PasskeySignInRequest', Type.Object({ credential: UsedCredential }));

export const PasskeyByLinkRequest = named(
  'PasskeyByLinkRequest',
  Type.Object({ secret: LinkSecret, name: Type.Optional(Name) }),
);

export const RedeemByPasskeyRequest = named(
  'RedeemByPasskeyRequest',
  Type.Object({ secret: LinkSecret, passkey_name: PasskeyName, credential: CreatedCredential, ...Names }),
);

export const PasskeyRequest = named(
  'PasskeyRequest',
  Type.Object({ name: PasskeyName, credential: CreatedCredential }),
);

export const PasskeyNameRequest = named('PasskeyNameRequest', Type.Object({ name: PasskeyName }));

export const Passkey = named(
  'Passkey',
  Type.Object({
    id: Uuid,
    name: PasskeyName,
    created_at: DateTime,
    last_used_at: Nullable(DateTime),
    synced: Type.Boolean({ description: 'True if its authenticator copies it to other devices of its owner.' }),
    site: Type.String({ description: 'Host of the installation when it was made.' }),
    usable: Type.Boolean({ description: 'False if the installation has another host now: browsers do not offer it.' }),
  }),
);

export const PasskeyList = named(
  'PasskeyList',
  Type.Object({ has_password: Type.Boolean(), results: Type.Array(Passkey) }),
);
