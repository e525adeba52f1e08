import { ECR, SCALEWAY, type KindShape } from '#resources/registry/index.ts';

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

const example = 'oci://registry.example.com/charts';
const nowhere = () => null;
const login = (url: KindShape['url']): KindShape => ({
  ways: [['username', 'password']],
  anonymous: true,
  url,
  example,
});

/** Credentials and addresses of each kind of repository. */
export const REPOSITORIES: Record<HelmRepositoryKind, KindShape> = {
  HTTPS: { ...login(nowhere), example: 'https://charts.example.com' },
  OCI_ECR: { ...ECR, url: nowhere, example: 'oci://<account>.dkr.ecr.<region>.amazonaws.com' },
  OCI_SCALEWAY_CR: { ...SCALEWAY, url: (region) => `oci://rg.${region}.scw.cloud`, example },
  OCI_DOCKER_HUB: login(() => 'oci://registry-1.docker.io'),
  OCI_PUBLIC_ECR: { ways: [], anonymous: true, url: () => 'oci://public.ecr.aws', example },
  OCI_GENERIC_CR: login(nowhere),
  OCI_GITHUB_CR: login(() => 'oci://ghcr.io'),
  OCI_GITLAB_CR: login(() => 'oci://registry.gitlab.com'),
};
