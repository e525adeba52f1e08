import type { EventStreams } from '#platform/events/stream.ts';
import type { ClusterRef, Runtime } from '#runtimes/runtime.ts';
import type { ProgramFinder } from '#services/kinds/terraform/versions.ts';
import type { ImageReader, RegistryFinder } from '#services/images/image-name.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';
import type { FolderToStore, StoredFolder } from '#services/sources/uploads/index.ts';
import type { HostResolver } from '#platform/dns/resolver.ts';

/** Dependencies of services besides the database; app/ provides them, tests provide their own. */
export interface ServiceNeeds {
  resolver: HostResolver;
  repositories: RepositoryReader;
  /** Makes a commit of an uploaded folder, and stores it. */
  storeFolder(folder: FolderToStore): Promise<StoredFolder>;
  images: ImageReader;
  /** Source of events, which tell a followed log that its service is deployed. */
  streams: EventStreams;
  /** Id of this machine; null if this process has none. */
  machineId: string | null;
  /** Returns the runtime of a cluster. Throws `OnOtherMachine` or another error for people if this process cannot use it. */
  runtimeOf(cluster: ClusterRef & { nodeId: string | null }): Promise<Runtime>;
  findRegistry: RegistryFinder;
  /** Programs of Terraform and OpenTofu on this machine. */
  terraformPrograms: ProgramFinder;
}
