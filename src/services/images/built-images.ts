import { systemContext, type Platform } from '#platform/context.ts';
import { createHttpClient, type HttpClient } from '#platform/http-client/index.ts';
import { imageReference, openRegistry, RegistryError, type RegistryClient } from '#platform/oci/index.ts';
import { findRegistryOfCluster, placeRefusal } from '#resources/cluster/index.ts';
import { createRepository, findRegistryOf, registryAccess } from '#resources/registry/index.ts';
import { repositoryOf, type ImageRegistries } from '#runtimes/image-store.ts';
import { RuntimeError, type RegistryAccess } from '#runtimes/runtime.ts';

type Access = NonNullable<Awaited<ReturnType<typeof registryAccess>>>;

/** Registry of the organization, opened for the repository of an image. */
interface Opened {
  access: Access;
  client: RegistryClient;
  /** Name of the repository within the registry. */
  name: string;
  /** Tag or digest. */
  reference: string;
}

const NO_REGISTRY =
  'Images that are built for a Kubernetes cluster go through a registry, and this cluster has none: set its advanced setting registry.id to the id of a container registry of the organization that it pulls from.';

/**
 * Creates the registries of a cluster's organization, for the images that are built for the cluster. The builder is a Docker Engine that a
 * machine reaches: an organization that may not use that machine or Docker may not build there either.
 */
export function createBuiltImages(
  platform: Platform,
  { clusterId, nodeId }: { clusterId: string; nodeId: string },
): ImageRegistries {
  const http = createHttpClient({ allowedPrivateAddresses: platform.settings.allowedPrivateAddresses });
  /** Hosts of registries for which the log already says that images stay there. */
  const told = new Set<string>();

  const ownerOf = async () => {
    const found = await findRegistryOfCluster(platform.db, clusterId);
    if (!found) throw new RuntimeError('refused', 'The cluster is gone.');
    return found;
  };
  const ownAccess = async (signal?: AbortSignal): Promise<Access | undefined> => {
    const { organizationId, registryId } = await ownerOf();
    if (registryId === null) return undefined;
    return registryAccess(systemContext(platform), organizationId, registryId, signal);
  };
  /** Finds the registry of an image: the cluster's own where the image lies in it, else another one of the organization. */
  const findAccess = async (repository: string, signal?: AbortSignal): Promise<Access | undefined> => {
    const own = await ownAccess(signal);
    if (own && repository.startsWith(prefixOf(own.url))) return own;
    const { organizationId } = await ownerOf();
    return findRegistryOf(systemContext(platform), organizationId, repository, signal);
  };
  const open = async (image: string, signal?: AbortSignal): Promise<Opened | undefined> => {
    const { repository, reference } = splitImage(image);
    const access = await findAccess(repository, signal);
    return access && { access, reference, ...clientOf(http, access, repository, signal) };
  };

  return {
    buildRefusal: async () => {
      const { organizationId, registryId } = await ownerOf();
      const refusal = await placeRefusal(platform, organizationId, { runtime: 'docker', node_id: nodeId });
      if (refusal) return `Images for Kubernetes are built by the Docker Engine of a machine: ${refusal.message}.`;
      return registryId === null ? NO_REGISTRY : null;
    },
    target: (serviceId, signal) =>
      translated(async () => {
        const access = await ownAccess(signal);
        return access
          ? { repository: imageReference(access.url, repositoryOf(serviceId)), access: credentialsOf(access) }
          : null;
      }),
    prepare: ({ repository }, signal) =>
      translated(async () => {
        const { organizationId, registryId, tags } = await ownerOf();
        if (registryId === null) return;
        const name = repository.slice(repository.indexOf('/') + 1);
        await createRepository(systemContext(platform), { organizationId, registryId }, { name, tags }, signal);
      }),
    accessOf: (image, signal) =>
      translated(async () => {
        const access = await findAccess(splitImage(image).repository, signal);
        return access ? credentialsOf(access) : null;
      }),
    digestOf: (image, signal) =>
      translated(async () => {
        const opened = await open(image, signal);
        if (!opened) return null;
        return orMissing(opened.client, () => opened.client.resolveDigest(opened.name, opened.reference), null);
      }),
    list: (repository, signal) =>
      translated(async () => {
        const opened = await open(`${repository}:all`, signal);
        if (!opened) return [];
        const { client, name } = opened;
        const images = new Set<string>();
        for (const tag of await orMissing(client, () => client.tags(name), []))
          images.add(`${repository}@${await client.resolveDigest(name, tag)}`);
        return [...images];
      }),
    remove: (image, signal) =>
      translated(async () => {
        const opened = await open(image, signal);
        if (!opened) return;
        const { access, client, name, reference } = opened;
        try {
          await client.remove(name, reference);
        } catch (error) {
          if (!(error instanceof RegistryError) || !['unsupported', 'unauthorized'].includes(error.failure))
            throw error;
          // Credentials that are wrong may be mended: that is tried again.
          await client.ping();
          if (told.has(access.host)) return;
          told.add(access.host);
          platform.log.warn(
            { registry: access.host, image },
            `${error.message} Built images that are no longer needed stay there: let the registry expire them.`,
          );
        }
      }),
  };
}

const prefixOf = (url: string): string => imageReference(url, repositoryOf('')).slice(0, -repositoryOf('').length);

const credentialsOf = ({ host, credentials }: Access): RegistryAccess | null => credentials && { host, ...credentials };

const clientOf = (http: HttpClient, access: Access, repository: string, signal?: AbortSignal) => ({
  client: openRegistry(http, access, signal),
  name: repository.slice(access.host.length + 1),
});

/** Splits `registry.example.com:5000/team/app:tag` or `…@sha256:…` into the repository and the tag or digest. */
function splitImage(image: string): { repository: string; reference: string } {
  const at = image.includes('@') ? image.indexOf('@') : image.lastIndexOf(':');
  return { repository: image.slice(0, at), reference: image.slice(at + 1) };
}

/** Asks for an image; returns `missing` where there is none. Many registries say 401 or 403 of what they do not have. */
async function orMissing<T, M>(client: RegistryClient, ask: () => Promise<T>, missing: M): Promise<T | M> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error;
    if (error.failure === 'not_found') return missing;
    if (error.failure !== 'unauthorized') throw error;
    await client.ping();
    return missing;
  }
}

/** Converts the failures of registries. */
async function translated<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error;
    throw new RuntimeError(error.passing ? 'unreachable' : 'failed', error.message, error);
  }
}
