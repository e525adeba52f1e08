import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { BLANK_IS_ABSENT } from '#platform/http/blank.ts';
import { Type } from '#platform/http/schema.ts';
import type { RegistryAccess } from '#platform/oci/index.ts';
import type { ImageName as ImageOfRegistry } from '#deployments/index.ts';

/** Reads images in the registries of an organization. */
export interface ImageReader {
  /** Resolves a name and a tag to a reference with the present digest. Throws an error for people. */
  resolveImage(request: ImageOfRegistry & { organizationId: string; signal: AbortSignal }): Promise<string>;
}

/** Finds a registry of the organization with its credentials. */
export type RegistryFinder = (
  context: Context,
  organizationId: string,
  registryId: string,
) => Promise<RegistryAccess | undefined>;

/** Name of an image within its registry (OCI distribution, *Pulling manifests*); the registry's host may stand before it. */
export const ImageName = Type.String({ minLength: 1, maxLength: 255 });

/** Tag, or a digest (`sha256:…`), which always names the same image. */
export const ImageTag = Type.String({
  ...BLANK_IS_ABSENT,
  pattern: '^([a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}|sha256:[0-9a-f]{64})$',
  description: 'A tag of the image, or a digest (`sha256:…`).',
});

const NAME = /^([a-zA-Z0-9.-]+(:\d+)?\/)?[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$/;

/** Throws 400 that names the field if the name is not valid for an image. */
export function checkImageName(name: string, field: string): string {
  if (!NAME.test(name))
    throw invalidField(
      field,
      'must be the name of an image: lower-case letters, digits, ".", "_", "-", parts divided by "/"',
    );
  return name;
}
