import type { RegistryFinder } from '#services/capabilities/checks/index.ts';
import type { HostResolver } from '#services/capabilities/custom-domains/index.ts';
import type { RepositoryReader } from '#services/parts/repository.ts';

/** What services need from outside the database; app/ hands it over, tests their own. */
export interface ServiceNeeds {
  resolver: HostResolver;
  repositories: RepositoryReader;
  findRegistry: RegistryFinder;
}
