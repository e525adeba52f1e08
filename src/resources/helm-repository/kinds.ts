import { ECR, SCALEWAY, type CredentialShape } from '#resources/registry/index.ts';

/** Kinds of Helm repositories (contract: `HelmRepositoryKindEnum`): an index over HTTPS, or charts in a registry. */
export const HELM_REPOSITORY_KINDS = [
  'HTTPS',
  'OCI_ECR',
  'OCI_SCALEWAY_CR',
  'OCI_DOCKER_HUB',
  'OCI_PUBLIC_ECR',
  'OCI_GENERIC_CR',
  'OCI_GITHUB_CR',
  'OCI_GITLAB_CR',
] as const;
export type HelmRepositoryKind = (typeof HELM_REPOSITORY_KINDS)[number];

interface KindOfRepository extends CredentialShape {
  /** Where it is when nobody says; null where each is elsewhere. */
  url(region: string | number | undefined): string | null;
}

const login = (url: KindOfRepository['url']): KindOfRepository => ({
  ways: [['username', 'password']],
  anonymous: true,
  url,
});
const nowhere = () => null;

/** What each kind of repository is. */
export const REPOSITORIES: Record<HelmRepositoryKind, KindOfRepository> = {
  HTTPS: login(nowhere),
  OCI_ECR: { ...ECR, url: nowhere },
  OCI_SCALEWAY_CR: { ...SCALEWAY, url: (region) => `oci://rg.${region}.scw.cloud` },
  OCI_DOCKER_HUB: login(() => 'oci://registry-1.docker.io'),
  OCI_PUBLIC_ECR: { ways: [], anonymous: true, url: () => 'oci://public.ecr.aws' },
  OCI_GENERIC_CR: login(nowhere),
  OCI_GITHUB_CR: login(() => 'oci://ghcr.io'),
  OCI_GITLAB_CR: login(() => 'oci://registry.gitlab.com'),
};
