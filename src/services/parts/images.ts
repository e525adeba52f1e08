import type { ImageName } from '#deployments/index.ts';

/** Asks registries of an organization for what stands in them. */
export interface ImageReader {
  /** The image that a name and a tag stand for now, as a reference with its digest. Throws an error for people. */
  resolveImage(request: ImageName & { organizationId: string; signal: AbortSignal }): Promise<string>;
}
