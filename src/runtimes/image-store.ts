import { createHash } from 'node:crypto';
import type { BuildContext, BuildSpec, RegistryAccess, RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';

/** Repository that the images of one service are pushed to, and that its cluster pulls them from. */
export interface ImageTarget {
  /** Name with the registry's host: `registry.example.com:5000/team/quarterdeck-<service>`. */
  repository: string;
  /** Credentials to push with; null for a registry that asks for none. */
  access: RegistryAccess | null;
}

/** Registries of a cluster's organization, for images that are built for that cluster. Each method throws RuntimeError. */
export interface ImageRegistries {
  /**
   * Returns why no image may be built for the cluster, with what would help; null if it may. It has no registry, or the operator lets its
   * organization use no engine of this machine. Asks nobody outside.
   */
  buildRefusal(): Promise<string | null>;
  /** Returns the repository of a service in the registry that the cluster's settings name; null if they name none. */
  target(serviceId: string, signal?: AbortSignal): Promise<ImageTarget | null>;
  /** Creates the repository where the registry takes no image before that. */
  prepare(target: ImageTarget, signal?: AbortSignal): Promise<void>;
  /** Returns the digest of an image (`…:tag` or `…@sha256:…`); null if no registry of the organization has it. */
  digestOf(image: string, signal?: AbortSignal): Promise<string | null>;
  /** Returns the credentials for pulling an image; null if its registry asks for none, or the organization has no such registry. */
  accessOf(image: string, signal?: AbortSignal): Promise<RegistryAccess | null>;
  /** Returns all images of a repository by their digests. */
  list(repository: string, signal?: AbortSignal): Promise<string[]>;
  /** Removes an image, given with its digest. Succeeds for a missing image, and where the registry lets nobody remove images. */
  remove(image: string, signal?: AbortSignal): Promise<void>;
}

/** Builder of images for clusters that build none by themselves. */
export interface ImageBuilder {
  /** Returns the architecture that images are built for (`amd64`). Throws RuntimeError with a remedy if the builder does not answer. */
  architecture(): Promise<string>;
  /** Builds an image as `Runtime.build` does; it stays on the builder until `push` ends. */
  build(spec: BuildSpec, context: BuildContext): Promise<{ image: string }>;
  /** Pushes a built image, returns its digest, and removes it from the builder, also after a failure. Layers stay in the cache of builds. */
  push(image: string, target: ImageTarget & { tag: string }, spec: BuildSpec, context: RuntimeContext): Promise<string>;
  /** Removes images of a service whose process was killed before it pushed them. */
  discard(identity: WorkloadIdentity): Promise<void>;
}

/** Name of the repository of a service, below the address of its registry. */
export const repositoryOf = (serviceId: string): string => `quarterdeck-${serviceId}`;

/** Returns the tag of an image by its cache key: the key itself if it is a valid tag, else its hash. */
export const tagOf = (cacheKey: string): string =>
  /^\w[\w.-]{0,127}$/.test(cacheKey) ? cacheKey : createHash('sha256').update(cacheKey).digest('hex');
