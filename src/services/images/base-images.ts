import { badRequest } from '#kernel/errors.ts';
import { readShapeOf } from '#kernel/parsing/index.ts';
import { systemContext, type Platform } from '#platform/context.ts';
import type { HttpClient } from '#platform/http-client/index.ts';
import { isDigest, locateImage, openRegistry, type RegistryClient } from '#platform/oci/index.ts';
import { findRegistryOf } from '#resources/registry/index.ts';
import type { BaseImage } from '#runtimes/runtime.ts';

/** Image as a Dockerfile names it. */
interface BaseImageRequest {
  organizationId: string;
  /** True for the code of a fork. */
  isUntrusted: boolean;
  /** `node:24-alpine`, `registry.example.com/team/base@sha256:…`. */
  name: string;
  /** `linux/amd64` or `linux/arm64/v8`. */
  platform: string;
  signal: AbortSignal;
}

export type BaseImageReader = (request: BaseImageRequest) => Promise<BaseImage>;

const CONFIG_BYTES = 4 * 1024 * 1024;
/** Maximum number of cached image configurations. They belong to digests, so they never change. */
const REMEMBERED = 500;

/**
 * Resolves the images that builds of an organization may use. These are images that a registry lets the organization read now, and those on
 * the engine that the operator named (`QUARTERDECK_LOCAL_BASE_IMAGES`). Other images on the engine may be another tenant's. Where the code of a
 * fork is built, registries are asked without credentials: its Dockerfile would read whatever image it names.
 */
export function createBaseImages(platform: Platform, http: HttpClient): BaseImageReader {
  const shared = platform.settings.localBaseImages;
  const triggers = new Map<string, string[]>();
  return async ({ organizationId, isUntrusted, name, platform: wanted, signal }) => {
    const image = parseName(name);
    if (isShared(shared, image)) return { reference: name, onBuild: [], registry: null };
    const access = isUntrusted
      ? undefined
      : await findRegistryOf(systemContext(platform), organizationId, image.repository, signal);
    const { base, name: within, tag } = locateImage(image.repository, image.digest ?? image.tag, access?.url ?? null);
    const client = openRegistry(http, access ?? { organizationId, url: base, credentials: null }, signal);
    const manifest = await manifestOf(client, within, tag, wanted);
    const reference = `${image.repository}@${manifest.digest}`;
    let onBuild = triggers.get(manifest.digest);
    if (!onBuild) {
      const config = await configOf(client, within, manifest.content, name);
      onBuild = await triggersOf(organizationId, config, name);
      if (triggers.size >= REMEMBERED) triggers.clear();
      triggers.set(manifest.digest, onBuild);
    }
    const registry = access?.credentials ? { host: access.host, ...access.credentials } : null;
    return { reference, onBuild, registry };
  };
}

interface ImageParts {
  /** Name with the registry's host, if it has one. */
  repository: string;
  tag: string;
  digest: string | null;
}

const NAME = /^((?:[a-zA-Z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(?::(\w[\w.-]{0,127}))?(?:@(\S+))?$/;

function parseName(name: string): ImageParts {
  const [, repository, tag = 'latest', digest = null] = NAME.exec(name) ?? [];
  if (!repository || (digest !== null && !isDigest(digest)))
    throw badRequest(
      'must be the name of an image in a registry, such as node:24 or registry.example.com/team/base@sha256:….',
    );
  return { repository, tag, digest };
}

/** Tells whether the operator shares an image of the engine with every organization. A setting without a tag stands for all tags. */
const isShared = (shared: readonly string[], { repository, tag, digest }: ImageParts): boolean =>
  digest === null && (shared.includes(repository) || shared.includes(`${repository}:${tag}`));

/** Returns the manifest of one platform, resolved within an index. The builder uses exactly the image that is checked here. */
async function manifestOf(client: RegistryClient, name: string, tag: string, platform: string) {
  const found = await client.manifest(name, tag);
  const { manifests } = found.content;
  if (!Array.isArray(manifests)) return found;
  const [os, architecture, variant] = platform.split('/');
  const fits = (manifests as { digest?: unknown; platform?: Record<string, unknown> }[]).filter(
    (one) => one.platform?.['os'] === os && one.platform?.['architecture'] === architecture,
  );
  const chosen = fits.find((one) => variant !== undefined && one.platform?.['variant'] === variant) ?? fits[0];
  if (typeof chosen?.digest !== 'string') throw badRequest(`its registry has no image of it for ${platform}.`);
  return client.manifest(name, chosen.digest);
}

/** Returns the configuration of an image. */
async function configOf(
  client: RegistryClient,
  name: string,
  manifest: Record<string, unknown>,
  image: string,
): Promise<Buffer> {
  const { digest } = (manifest['config'] ?? {}) as { digest?: unknown };
  if (typeof digest !== 'string')
    throw badRequest(
      `the manifest of ${image} is of a format that builds here do not take: push it again with a current tool.`,
    );
  return client.blob(name, digest, CONFIG_BYTES);
}

/** Reads the ONBUILD instructions in the configuration of an image. */
async function triggersOf(organizationId: string, config: Buffer, image: string): Promise<string[]> {
  const file = { name: `the configuration of ${image}`, text: config };
  const read = await readShapeOf(organizationId, file, { config: { OnBuild: ['text'] } }, true);
  const given = read?.config?.OnBuild ?? [];
  const triggers = given.filter((one) => one !== null);
  if (triggers.length < given.length) throw badRequest(`${file.name}: its OnBuild must be a list of texts`);
  return triggers;
}
