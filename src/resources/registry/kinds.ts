import type { CredentialShape } from '#resources/registry/configuration.ts';
import type { KindShape } from '#resources/registry/keeping.ts';

/** Kinds of registries (contract: `ContainerRegistryKindEnum`). */
export const REGISTRY_KINDS = [
  'ECR',
  'SCALEWAY_CR',
  'DOCKER_HUB',
  'GITHUB_CR',
  'GITHUB_ENTERPRISE_CR',
  'GITLAB_CR',
  'PUBLIC_ECR',
  'DOCR',
  'GENERIC_CR',
  'GCP_ARTIFACT_REGISTRY',
  'AZURE_CR',
] as const;
export type RegistryKind = (typeof REGISTRY_KINDS)[number];

const nowhere = () => null;
const example = 'https://registry.example.com';
const LOGIN = ['username', 'password'];
const login = (url: KindShape['url']): KindShape => ({ ways: [LOGIN], anonymous: true, url, example });

/** Credential fields of Amazon's registries, and below of Scaleway's; their OCI Helm repositories take the same. */
export const ECR: CredentialShape = {
  ways: [
    ['region', 'access_key_id', 'secret_access_key'],
    ['region', 'role_arn'],
  ],
  anonymous: false,
};
export const SCALEWAY: CredentialShape = {
  ways: [['region', 'scaleway_access_key', 'scaleway_secret_key']],
  optional: ['scaleway_project_id'],
  anonymous: false,
};

/** Credentials and addresses of each kind of registry. */
export const REGISTRIES: Record<RegistryKind, KindShape> = {
  ECR: { ...ECR, url: nowhere, example: 'https://<account>.dkr.ecr.<region>.amazonaws.com' },
  SCALEWAY_CR: { ...SCALEWAY, url: (region) => `https://rg.${region}.scw.cloud`, example },
  DOCKER_HUB: login(() => 'https://docker.io'),
  GITHUB_CR: login(() => 'https://ghcr.io'),
  GITHUB_ENTERPRISE_CR: login(nowhere),
  GITLAB_CR: login(() => 'https://registry.gitlab.com'),
  PUBLIC_ECR: { ways: [], anonymous: true, url: () => 'https://public.ecr.aws', example },
  DOCR: login(() => 'https://registry.digitalocean.com'),
  GENERIC_CR: login(nowhere),
  GCP_ARTIFACT_REGISTRY: {
    ways: [
      ['region', 'json_credentials'],
      ['region', 'gcp_credentials_type', 'project_id', 'service_account_email', 'workload_identity_provider_resource'],
    ],
    optional: ['project_id', 'token_lifetime_seconds'],
    anonymous: false,
    url: (region) => `https://${region}-docker.pkg.dev`,
    example,
  },
  AZURE_CR: {
    ways: [['azure_tenant_id', 'azure_subscription_id'], LOGIN],
    anonymous: false,
    url: nowhere,
    example: 'https://<name>.azurecr.io',
  },
};
