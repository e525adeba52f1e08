/** Contexts of calls to a runtime. */
import type { RegistryAccess } from './specs.ts';

/** Context of `run`. */
export interface TaskContext extends RuntimeContext {
  /** Fills the spec's `folders`, or refuses the command. Called before the command starts, and not for an adopted execution. */
  prepare?(): Promise<void>;
}

/**
 * Attempt at a deployment. Several may follow each other with the same generation. An earlier attempt may continue for a while after a
 * later one has begun: its process was suspended, or a call hung.
 */
export interface Attempt {
  /**
   * Number that grows with each attempt at the deployment. Objects carry it: a lower attempt changes nothing once a higher one has begun.
   */
  number: number;
  /** Returns whether this attempt may still act: false once its lease is lost, or its caller has stopped waiting for it. */
  holds(): boolean;
}

/** Context of every method that changes something. */
export interface RuntimeContext {
  /** Signal that aborts when the deployment is cancelled, the lease is lost or the deadline has passed: end child processes, then throw. */
  signal: AbortSignal;
  /** Attempt that calls; absent if no other attempt can follow. A superseded attempt cleans up nothing: its successor may use it. */
  attempt?: Attempt;
  /** Writes a line for people to the deployment's log. The caller masks secrets. */
  log(line: string): void;
}

/** Image that a build may start from or copy files from, as its registry resolved it for the organization. */
export interface BaseImage {
  /** Reference with its digest, or the name of an image on the engine that the operator shares with every organization. */
  reference: string;
  /** ONBUILD instructions that the image adds to images built upon it. */
  onBuild: string[];
  /** Credentials for the image's registry; null for public images and for images on the engine. */
  registry: RegistryAccess | null;
}

/** Context of `build`. */
export interface BuildContext extends RuntimeContext {
  /**
   * Asks the organization's registries for an image of a platform (`linux/amd64`). Throws an error for people if the image may not be used.
   */
  resolveImage(name: string, platform: string): Promise<BaseImage>;
  /** Throws an error for people if tenants may not make a builder fetch from the host. */
  checkHost(host: string): Promise<void>;
}
