import { DateTime, Name, named, Nullable, OneOf, Type, Uuid, type TSchema } from '#platform/http/schema.ts';

const Text = Type.String({ minLength: 1 });

/** One of several object forms, told apart by `mode`. */
const OneMode = <T>(variants: TSchema[]) => Type.Unsafe<T>({ type: 'object', anyOf: variants });

export interface SecretManagerEndpoint {
  mode: 'AWS_SECRET_MANAGER' | 'AWS_PARAMETER_STORE' | 'GCP_SECRET_MANAGER';
  region: string;
  /** Of GCP_SECRET_MANAGER only. */
  project_id?: string;
}

/** Where the secrets are. */
const Endpoint = named(
  'SecretManagerEndpoint',
  OneMode<SecretManagerEndpoint>([
    Type.Object({ mode: OneOf(['AWS_SECRET_MANAGER', 'AWS_PARAMETER_STORE']), region: Text }),
    Type.Object({ mode: OneOf(['GCP_SECRET_MANAGER']), region: Text, project_id: Text }),
  ]),
);

export interface SecretManagerAuthentication {
  mode: 'AUTOMATICALLY_CONFIGURED' | 'AWS_ROLE_ARN' | 'AWS_STATIC_CREDENTIALS' | 'GCP_JSON_CREDENTIALS';
  role_arn?: string;
  region?: string;
  access_key?: string;
  secret_key?: string | null;
  json_credentials?: string | null;
}

const Secret = Type.Optional(
  Nullable(Type.String({ minLength: 1, writeOnly: true, description: 'Never answered; left out it keeps its value.' })),
);

/** How to be let in. Secrets are written only. */
const Authentication = named(
  'SecretManagerAuthentication',
  OneMode<SecretManagerAuthentication>([
    Type.Object({ mode: OneOf(['AUTOMATICALLY_CONFIGURED']) }),
    Type.Object({ mode: OneOf(['AWS_ROLE_ARN']), role_arn: Text }),
    Type.Object({ mode: OneOf(['AWS_STATIC_CREDENTIALS']), region: Text, access_key: Text, secret_key: Secret }),
    Type.Object({ mode: OneOf(['GCP_JSON_CREDENTIALS']), json_credentials: Secret }),
  ]),
);

/** An access as it is asked for: with the id of one of the cluster's it is that one, changed. */
export const SecretManagerAccessRequest = named(
  'SecretManagerAccessRequest',
  Type.Object({
    id: Type.Optional(Nullable(Uuid)),
    name: Name,
    endpoint: Endpoint,
    authentication: Authentication,
  }),
);

export const SecretManagerAccess = named(
  'SecretManagerAccess',
  Type.Object({
    id: Uuid,
    name: Type.String(),
    created_at: DateTime,
    updated_at: DateTime,
    endpoint: Endpoint,
    authentication: Authentication,
  }),
);
