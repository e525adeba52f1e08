import { DateTime, Name, named, Nullable, OneOf, Type, Uuid, type TSchema } from '#platform/http/schema.ts';

const Text = Type.String({ minLength: 1 });

/** Schema of several object forms, told apart by `mode`. */
const OneMode = <T>(variants: TSchema[]) => Type.Unsafe<T>({ type: 'object', anyOf: variants });

/** Part of the host name of a provider's API: the pattern allows nothing that could lead to another host. */
const Region = Type.String({ minLength: 1, maxLength: 64, pattern: '^[a-z0-9-]+$' });
const Path = Type.String({ minLength: 1, maxLength: 255, pattern: '^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$' });

export interface SecretManagerEndpoint {
  mode: 'AWS_SECRET_MANAGER' | 'AWS_PARAMETER_STORE' | 'GCP_SECRET_MANAGER' | 'SCALEWAY_SECRET_MANAGER' | 'VAULT';
  /** Set in every mode but VAULT. */
  region?: string;
  /** Set in modes GCP_SECRET_MANAGER and SCALEWAY_SECRET_MANAGER. */
  project_id?: string;
  /** Set in mode VAULT: the server's URL, the mount of its KV engine of version 2, and its namespace if it has any. */
  url?: string;
  mount?: string;
  namespace?: string;
}

/** Location of the secrets. */
const Endpoint = named(
  'SecretManagerEndpoint',
  OneMode<SecretManagerEndpoint>([
    Type.Object({ mode: OneOf(['AWS_SECRET_MANAGER', 'AWS_PARAMETER_STORE']), region: Region }),
    Type.Object({ mode: OneOf(['GCP_SECRET_MANAGER']), region: Region, project_id: Text }),
  ]),
);

/** Locations of secrets that the reference interface does not know. */
const AdditionalEndpoint = named(
  'AdditionalSecretManagerEndpoint',
  OneMode<SecretManagerEndpoint>([
    Type.Object({ mode: OneOf(['SCALEWAY_SECRET_MANAGER']), region: Region, project_id: Uuid }),
    Type.Object({
      mode: OneOf(['VAULT']),
      url: Type.String({ format: 'uri', pattern: '^https?://', maxLength: 2000 }),
      mount: Type.Optional({ ...Path, description: 'Of the KV engine of version 2; `secret` without.' }),
      namespace: Type.Optional(Path),
    }),
  ]),
);

export interface SecretManagerAuthentication {
  mode:
    | 'AUTOMATICALLY_CONFIGURED'
    | 'AWS_ROLE_ARN'
    | 'AWS_STATIC_CREDENTIALS'
    | 'GCP_JSON_CREDENTIALS'
    | 'SCALEWAY_SECRET_KEY'
    | 'VAULT_TOKEN'
    | 'VAULT_APP_ROLE';
  role_arn?: string;
  region?: string;
  access_key?: string;
  secret_key?: string | null;
  json_credentials?: string | null;
  token?: string | null;
  role_id?: string;
  secret_id?: string | null;
  /** Mount of the AppRole method, in mode VAULT_APP_ROLE. */
  mount?: string;
}

const Secret = Type.Optional(
  Nullable(
    Type.String({
      minLength: 1,
      maxLength: 20_000,
      writeOnly: true,
      description: 'Never answered; left out it keeps its value.',
    }),
  ),
);

/** Credentials for a secret manager. Their secrets are written only. */
const Authentication = named(
  'SecretManagerAuthentication',
  OneMode<SecretManagerAuthentication>([
    Type.Object({ mode: OneOf(['AUTOMATICALLY_CONFIGURED']) }),
    Type.Object({ mode: OneOf(['AWS_ROLE_ARN']), role_arn: Text }),
    Type.Object({ mode: OneOf(['AWS_STATIC_CREDENTIALS']), region: Text, access_key: Text, secret_key: Secret }),
    Type.Object({ mode: OneOf(['GCP_JSON_CREDENTIALS']), json_credentials: Secret }),
  ]),
);

const AdditionalAuthentication = named(
  'AdditionalSecretManagerAuthentication',
  OneMode<SecretManagerAuthentication>([
    Type.Object({ mode: OneOf(['SCALEWAY_SECRET_KEY']), secret_key: Secret }),
    Type.Object({ mode: OneOf(['VAULT_TOKEN']), token: Secret }),
    Type.Object({
      mode: OneOf(['VAULT_APP_ROLE']),
      role_id: Text,
      secret_id: Secret,
      mount: Type.Optional({ ...Path, description: 'Of the AppRole method; `approle` without.' }),
    }),
  ]),
);

/** Returns the schema of an access in a request: the id of one of the cluster's accesses changes that access. */
const requestOf = (endpoint: typeof Endpoint, authentication: typeof Authentication) =>
  Type.Object({ id: Type.Optional(Nullable(Uuid)), name: Name, endpoint, authentication });

const answerOf = (endpoint: typeof Endpoint, authentication: typeof Authentication) =>
  Type.Object({
    id: Uuid,
    name: Type.String(),
    created_at: DateTime,
    updated_at: DateTime,
    endpoint,
    authentication,
  });

export const SecretManagerAccessRequest = named('SecretManagerAccessRequest', requestOf(Endpoint, Authentication));
export const SecretManagerAccess = named('SecretManagerAccess', answerOf(Endpoint, Authentication));

/**
 * Accesses to managers that the reference interface does not know stand in a field of their own: existing clients refuse a whole cluster
 * over one value that they don't know.
 */
export const AdditionalSecretManagerAccessRequest = named(
  'AdditionalSecretManagerAccessRequest',
  requestOf(AdditionalEndpoint, AdditionalAuthentication),
);
export const AdditionalSecretManagerAccess = named(
  'AdditionalSecretManagerAccess',
  answerOf(AdditionalEndpoint, AdditionalAuthentication),
);
