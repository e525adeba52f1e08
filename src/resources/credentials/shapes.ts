import type { OrganizationCredentials } from '#resources/organization/index.ts';

/** Value of `object_type` in answers. */
export type ObjectType = OrganizationCredentials['credential']['object_type'];

type Input = Readonly<Record<string, string | undefined>>;

/** Parts of an account: what is answered, and what is only stored. */
export interface AccountParts {
  objectType: ObjectType;
  fields: Record<string, string | number>;
  secrets: Record<string, string>;
}

/** Seconds for which Google's tokens of a federated account are valid unless another time is asked for. */
const GCP_TOKEN_SECONDS = 3600;

/** Picks the fields of the input that are there. */
const pick = (input: Input, ...names: string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (input[name] === undefined ? [] : [[name, input[name]]])));

export function awsParts(input: Input): AccountParts {
  const isVsphere = input.type?.startsWith('EKS_ANYWHERE') ?? false;
  const objectType = isVsphere ? 'EKS_ANYWHERE_VSPHERE' : input.type === 'AWS_ROLE' ? 'AWS_ROLE' : 'AWS';
  return {
    objectType,
    fields: pick(input, 'vsphere_user', 'access_key_id', 'role_arn'),
    secrets: pick(input, 'vsphere_password', 'secret_access_key'),
  };
}

export const scalewayParts = (input: Input): AccountParts => ({
  objectType: 'SCW',
  fields: pick(input, 'scaleway_access_key', 'scaleway_project_id', 'scaleway_organization_id'),
  secrets: pick(input, 'scaleway_secret_key'),
});

export function gcpParts(input: Input): AccountParts {
  if (input.service_account_email === undefined)
    return { objectType: 'GCP', fields: {}, secrets: pick(input, 'gcp_credentials') };
  const [project] = input.service_account_email.split('@')[1]!.split('.');
  return {
    objectType: 'GCP_WORKLOAD_IDENTITY_FEDERATION',
    fields: {
      ...pick(input, 'service_account_email', 'workload_identity_provider_resource'),
      project_id: project!,
      token_lifetime_seconds: GCP_TOKEN_SECONDS,
    },
    secrets: {},
  };
}

/** Existing clients require the two ids of an application, which storing an account does not register. */
export const azureParts = (input: Input): AccountParts => ({
  objectType: 'AZURE',
  fields: {
    ...pick(input, 'azure_subscription_id', 'azure_tenant_id'),
    azure_application_id: '',
    azure_application_object_id: '',
  },
  secrets: {},
});

export const onPremiseParts = (): AccountParts => ({ objectType: 'OTHER', fields: {}, secrets: {} });
