import { badRequest } from '#kernel/errors.ts';
import { systemContext, type Platform } from '#platform/context.ts';
import { createHttpClient, type HttpClient } from '#platform/http-client/index.ts';
import { PUBLIC_REGISTRY } from '#deployments/index.ts';
import { imageReference, locateImage, nameWithin, openRegistry, parseRegistry } from '#platform/oci/index.ts';
import { registryAccess } from '#resources/registry/index.ts';
import { createCharts, type Charts } from '#services/images/charts.ts';
import { createBaseImages, type BaseImageReader } from '#services/images/base-images.ts';
import type { RegistryAccess } from '#runtimes/runtime.ts';
import type { ImageReader } from '#services/images/image-name.ts';

/** Registries as the engine uses them. */
export interface Images extends ImageReader, Charts {
  /** Returns the credentials with which a runtime pulls from a registry; null for public registries and registries without credentials. */
  registryAccess(organizationId: string, registryId: string): Promise<RegistryAccess | null>;
  /** Resolves an image that a build of the organization names. Throws an error for people if it may not be used. */
  resolveBase: BaseImageReader;
  /** Throws an error for people if the host has a private address: builders fetch from the machine's own network. */
  checkHost(host: string): Promise<void>;
}

/** Creates the reader of the organizations' registries, which uses their credentials and the settings' address policy. */
export function createImages(platform: Platform): Images {
  const http = createHttpClient({ allowedPrivateAddresses: platform.settings.allowedPrivateAddresses });
  const accessTo = async (organizationId: string, registryId: string, signal?: AbortSignal) => {
    const access = await registryAccess(systemContext(platform), organizationId, registryId, signal);
    if (!access) throw badRequest('Its container registry was deleted: name another one.');
    return access;
  };
  return {
    ...createCharts(platform),
    resolveImage: async ({ organizationId, registryId, name, tag, signal }) => {
      if (registryId === PUBLIC_REGISTRY) return resolvePublic(http, { organizationId, name, tag, signal });
      const access = await accessTo(organizationId, registryId, signal);
      const reference = imageReference(access.url, name);
      const client = openRegistry(http, access, signal);
      // The registry is asked for a digest, too: the engine may have the image of another organization, which may read it.
      const digest = await client.resolveDigest(nameWithin(parseRegistry(access.url), name), tag);
      return `${reference}@${digest}`;
    },
    registryAccess: async (organizationId, registryId) => {
      if (registryId === PUBLIC_REGISTRY) return null;
      const { host, credentials } = await accessTo(organizationId, registryId);
      return credentials && { host, ...credentials };
    },
    resolveBase: createBaseImages(platform, http),
    checkHost: async (host) => void (await http.addressPolicy(host)),
  };
}

/** Resolves the tag of a public image to its digest. The name has the registry's host instead of a registry of the organization. */
async function resolvePublic(
  http: HttpClient,
  { organizationId, name, tag, signal }: { organizationId: string; name: string; tag: string; signal: AbortSignal },
): Promise<string> {
  const { base, name: within } = locateImage(name, tag, null);
  const client = openRegistry(http, { organizationId, url: base, credentials: null }, signal);
  const digest = await client.resolveDigest(within, tag);
  return `${name}@${digest}`;
}

/** Reader that refuses every call, for programs that need only the routes, such as the API document. */
export const noImages: ImageReader = {
  resolveImage: () => Promise.reject(badRequest('Registries cannot be asked here: the program runs without them.')),
};
