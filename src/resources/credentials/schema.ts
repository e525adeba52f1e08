import { Name, named, OneOf, Type, type TSchema } from '#platform/http/schema.ts';

const Text = Type.String({ minLength: 1, maxLength: 2000 });
const Secret = Type.String({
  minLength: 1,
  maxLength: 65_536,
  writeOnly: true,
  description: 'Stored encrypted and never answered.',
});
const closed = <T extends Record<string, TSchema>>(properties: T) =>
  Type.Object({ name: Name, ...properties }, { additionalProperties: false });

/** Body of any of the credential operations, after its schema was checked. */
export interface CredentialsInput {
  name: string;
  [field: string]: string | undefined;
}

const variants = (title: string, ...shapes: TSchema[]) =>
  named(title, Type.Unsafe<CredentialsInput>({ type: 'object', anyOf: shapes }));

const vsphere = { vsphere_user: Text, vsphere_password: Secret };
const keys = { access_key_id: Text, secret_access_key: Secret };

export const AwsCredentialsRequest = variants(
  'AwsCredentialsRequest',
  closed({ type: OneOf(['AWS_ROLE']), role_arn: Text }),
  closed({ type: OneOf(['AWS_STATIC']), ...keys }),
  closed({ type: OneOf(['EKS_ANYWHERE_VSPHERE_ROLE']), ...vsphere, role_arn: Text }),
  closed({ type: OneOf(['EKS_ANYWHERE_VSPHERE_STATIC']), ...vsphere, ...keys }),
);

export const ScalewayCredentialsRequest = named(
  'ScalewayCredentialsRequest',
  closed({
    scaleway_access_key: Text,
    scaleway_secret_key: Secret,
    scaleway_project_id: Text,
    scaleway_organization_id: Text,
  }),
);

export const GcpCredentialsRequest = variants(
  'GcpCredentialsRequest',
  closed({ credential_type: Type.Optional(OneOf(['SERVICE_ACCOUNT_KEY'])), gcp_credentials: Secret }),
  closed({
    credential_type: Type.Optional(OneOf(['WORKLOAD_IDENTITY_FEDERATION', 'WIF'])),
    service_account_email: Type.String({
      maxLength: 255,
      pattern: '^[^@\\s]+@[a-z0-9-]+\\.iam\\.gserviceaccount\\.com$',
      description: 'E-mail of a service account: <account>@<project>.iam.gserviceaccount.com.',
    }),
    workload_identity_provider_resource: Text,
  }),
);

export const AzureCredentialsRequest = named(
  'AzureCredentialsRequest',
  closed({ azure_subscription_id: Text, azure_tenant_id: Text }),
);

export const OnPremiseCredentialsRequest = named('OnPremiseCredentialsRequest', closed({}));
