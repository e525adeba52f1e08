import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { findImage, registryProblem, searchImages, type FoundImage } from '#platform/oci/index.ts';
import { accessTo } from '#resources/registry/access.ts';
import type { RegistryRow } from '#resources/registry/queries.ts';

/**
 * Lists images of a registry with their tags: the one of a name, or those whose name contains a text. The registry itself is asked: 400 if
 * it refuses access, 502 if it does not answer.
 */
export async function listImages(
  context: Context & { signal: AbortSignal },
  registry: RegistryRow,
  { imageName, search }: { imageName?: string; search?: string },
): Promise<{ image_name: string; versions: string[] }[]> {
  if (imageName !== undefined && search !== undefined)
    throw invalidField('search', 'is not given together with imageName, which names one image');
  const { signal } = context;
  const http = createHttpClient({ allowedPrivateAddresses: context.settings.allowedPrivateAddresses });
  try {
    const access = await accessTo(context, registry, signal);
    const found: (FoundImage | undefined)[] =
      imageName === undefined
        ? await searchImages(http, access, search ?? '', signal)
        : [await findImage(http, access, imageName, signal)];
    return found.flatMap((image) => (image ? [{ image_name: image.name, versions: image.versions }] : []));
  } catch (error) {
    throw registryProblem(error);
  }
}
