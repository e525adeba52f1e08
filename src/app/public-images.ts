import { PUBLIC_REGISTRY } from '#deployments/index.ts';
import type { Platform } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { locateImage, openRegistry } from '#platform/oci/index.ts';
import type { RegistryAccess } from '#runtimes/runtime.ts';
import type { ImageReader } from '#services/parts/images.ts';

interface Images extends ImageReader {
  registryAccess(organizationId: string, registryId: string): Promise<RegistryAccess | null>;
}

/** The same images, and those that anybody may pull: named with their registry's host instead of a registry of the organization. */
export function withPublicImages(platform: Pick<Platform, 'settings'>, images: Images): Images {
  const http = createHttpClient({ allowedPrivateAddresses: platform.settings.allowedPrivateAddresses });
  return {
    resolveImage: async (request) => {
      if (request.registryId !== PUBLIC_REGISTRY) return images.resolveImage(request);
      const { name, tag, signal } = request;
      const { base, name: within } = locateImage(name, tag, null);
      const digest = await openRegistry(http, { url: base, credentials: null }, signal).resolveDigest(within, tag);
      return `${name}@${digest}`;
    },
    registryAccess: async (organizationId, registryId) =>
      registryId === PUBLIC_REGISTRY ? null : images.registryAccess(organizationId, registryId),
  };
}
