import type { DeployableKind } from '#deployments/index.ts';
import type { ImageReader } from '#services/images/image-name.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';

/** Dependencies of plans. */
export interface PlanNeeds extends Pick<ServiceNeeds, 'runtimeOf'> {
  kinds: Record<string, DeployableKind>;
  /** Returns whether a kind opens sealed values of its configuration for a deployment. */
  opens(kind: string): boolean;
  repositories: RepositoryReader;
  images: ImageReader;
}
