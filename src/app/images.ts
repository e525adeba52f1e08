import { badRequest } from '#kernel/errors.ts';
import { systemContext, type Platform } from '#platform/context.ts';
import { createHttpClient, type HttpClient } from '#platform/http-client/index.ts';
import { PUBLIC_REGISTRY } from '#deployments/index.ts';
import { imageReference, isDigest, locateImage, nameWithin, openRegistry, parseRegistry } from '#platform/oci/index.ts';
import { registryAccess } from '#resources/registry/index.ts';
import type { RegistryAccess } from '#runtimes/runtime.ts';
import type { ImageReader } from '#services/parts/images.ts';

/** Registries as the engine sees them. */
export interface Images extends ImageReader {
  /** How a runtime gets at a registry of the organization; null where nobody asks. */
  registryAccess(organizationId: string, registryId: string): Promise<RegistryAccess | null>;
}

/** Images of the organizations' registries, asked with their credentials and by the settings' policy. */
export function createImages(platform: Platform): Images {
  const http = createHttpClient({ allowedPrivateAddresses: platform.settings.allowedPrivateAddresses });
  const accessTo = async (organizationId: string, registryId: string, signal?: AbortSignal) => {
    const access = await registryAccess(systemContext(platform), organizationId, registryId, signal);
    if (!access) throw badRequest('Its container registry was deleted: name another one.');
    return access;
  };
  return {
    resolveImage: async ({ organizationId, registryId, name, tag, signal }) => {
      if (registryId === PUBLIC_REGISTRY) return resolvePublic(http, name, tag, signal);
      const access = await accessTo(organizationId, registryId, signal);
      const reference = imageReference(access.url, name);
      if (isDigest(tag)) return `${reference}@${tag}`;
      const client = openRegistry(http, access, signal);
      const digest = await client.resolveDigest(nameWithin(parseRegistry(access.url), name), tag);
      return `${reference}@${digest}`;
    },
    registryAccess: async (organizationId, registryId) => {
      if (registryId === PUBLIC_REGISTRY) return null;
      const { host, credentials } = await accessTo(organizationId, registryId);
      return credentials && { host, ...credentials };
    },
  };
}

/** An image that anybody may pull: named with its registry's host instead of a registry of the organization. */
async function resolvePublic(http: HttpClient, name: string, tag: string, signal: AbortSignal): Promise<string> {
  if (isDigest(tag)) return `${name}@${tag}`;
  const { base, name: within } = locateImage(name, tag, null);
  const digest = await openRegistry(http, { url: base, credentials: null }, signal).resolveDigest(within, tag);
  return `${name}@${digest}`;
}

/** For what only needs the routes, such as the document. */
export const noImages: ImageReader = {
  resolveImage: () => Promise.reject(badRequest('Registries cannot be asked here: the program runs without them.')),
};
