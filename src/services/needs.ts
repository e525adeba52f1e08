import type { RegistryFinder } from '#services/capabilities/checks/index.ts';
import type { HostResolver } from '#services/capabilities/custom-domains/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import type { ImageReader } from '#services/parts/images.ts';
import type { ProgramFinder } from '#services/kinds/terraform/index.ts';
import type { RepositoryReader } from '#services/parts/repository.ts';

/** What services need from outside the database; app/ hands it over, tests their own. */
export interface ServiceNeeds {
  resolver: HostResolver;
  repositories: RepositoryReader;
  images: ImageReader;
  /** The runtime of a cluster; throws an error for people when it cannot be used from here. */
  runtimeOf(cluster: { id: string; runtime: string }): Promise<Runtime>;
  findRegistry: RegistryFinder;
  /** Programs of Terraform and OpenTofu on this machine. */
  terraformPrograms: ProgramFinder;
}
