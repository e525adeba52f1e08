import { anySignal } from '#kernel/lease-signal.ts';
import { maskOf } from '#kernel/secrets-mask.ts';
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { tagOf } from '#runtimes/image-store.ts';
import { RuntimeError, cancelled } from '#runtimes/runtime.ts';
import { withinDisk } from '#runtimes/tools/disk-limits.ts';
import type { BaseImage, BuildContext, BuildSpec, RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';
import { findSource, packContext } from './build-context.ts';
import type { BuildSource } from './build-context.ts';
import { BuildProgress } from './build-progress.ts';
import { openSession } from './build-session.ts';
import { pinDockerfile, SCOPE_ARGUMENT } from './dockerfile/pin.ts';
import type { PinOptions } from './dockerfile/pin.ts';
import { LOOPBACK } from './container-config.ts';
import { asRuntimeError, engineMessage, statusOf, unless } from './errors.ts';
import { cacheScope } from './cache-scope.ts';
import { LABEL, identityLabels, imageRepository } from './labels.ts';
import type { DockerNode, EngineAbout } from './node.ts';
import { ensureImage, removePulled } from './pull.ts';
import { findImages } from './search.ts';

/** Output lines that a failed build's error repeats. */
const LAST_LINES = 20;

/** Returns the image name for a cache key. */
export const imageTag = (serviceId: string, cacheKey: string): string =>
  `${imageRepository(serviceId)}:${tagOf(cacheKey)}`;

/** Builds an image and returns its local id; an image with the same cache key is returned at once. */
export async function buildImage(
  node: DockerNode,
  spec: BuildSpec,
  context: BuildContext,
): Promise<{ image: string; cached: boolean }> {
  context.signal.throwIfAborted();
  const tag = imageTag(spec.identity.serviceId, spec.cacheKey);
  const present = await findBuilt(node, spec, tag);
  if (present) return { image: present, cached: true };
  const source = await findSource(spec);
  const { buildkit, product, version } = await node.about();
  context.log(
    `Building ${spec.dockerfilePath} with ${buildkit ? 'BuildKit' : 'the classic builder'} of ${product} ${version}.`,
  );
  if (buildkit && spec.resources.memoryMib > 0)
    context.log('BuildKit takes no limit of memory or CPU for one build: the engine’s own limits hold.');
  const given = withoutBuilders(spec.arguments, context);
  const text = await readDockerfile(source, spec.dockerfilePath);
  const options = pinOptions(spec.identity, await node.about(), given);
  const bases: BaseImage[] = [];
  const resolveImage: BuildContext['resolveImage'] = async (name, platform) => {
    const base = await context.resolveImage(name, platform);
    bases.push(base);
    return base;
  };
  const dockerfile = await pinDockerfile(text, options, { ...context, resolveImage });
  await pullPrivate(node, bases, context);
  const build = { spec: { ...spec, arguments: given }, source, dockerfile, tag, buildkit };
  await keepingReserve(node, context.signal, (signal) => runBuild(node, build, { ...context, signal }));
  const made = await findBuilt(node, spec, tag);
  if (!made) throw new RuntimeError('build_failed', `The build ended, but its image ${tag} is not there.`);
  await refuseTooLarge(node, tag);
  return { image: made, cached: false };
}

/** Builds while the engine's disk keeps its reserve, if that disk belongs to this machine. */
async function keepingReserve(node: DockerNode, signal: AbortSignal, run: (signal: AbortSignal) => Promise<void>) {
  const { storage } = await node.about();
  const isHere = storage !== null && node.publishAddress === LOOPBACK;
  const limits = isHere ? node.buildDisk : undefined;
  await withinDisk({ name: 'The build', folders: [], disk: storage ?? '', limits, signal, run });
}

/** Removes an image that exceeds the size limit, and throws RuntimeError `build_failed`. */
async function refuseTooLarge(node: DockerNode, tag: string): Promise<void> {
  if (!node.buildDisk) return;
  const { mostBytes } = node.buildDisk;
  const { Size } = await node.engine.getImage(tag).inspect();
  if (Size <= mostBytes) return;
  await removeImage(node, tag);
  const [size, most] = [Size, mostBytes].map((bytes) => `${Math.round(bytes / 2 ** 20)} MiB`);
  throw new RuntimeError('build_failed', `The image takes ${size}, more than the ${most} that the operator allows.`);
}

/** Pulls the base images that need credentials: a builder gets no credentials, but uses an image of the engine with that digest. */
async function pullPrivate(node: DockerNode, bases: BaseImage[], context: RuntimeContext): Promise<void> {
  for (const { reference, registry } of bases)
    if (registry !== null) await ensureImage(node, { image: reference, registry }, context);
}

async function findBuilt(node: DockerNode, spec: BuildSpec, tag: string): Promise<string | null> {
  const image = await unless([404], node.engine.getImage(tag).inspect());
  const labels = image?.Config?.Labels ?? {};
  const ours = labels[LABEL.installation] === node.installation && labels[LABEL.cacheKey] === spec.cacheKey;
  return image && ours ? image.Id : null;
}

export const hasImage = async (node: DockerNode, image: string): Promise<boolean> =>
  (await unless([404], node.engine.getImage(image).inspect())) !== null;

interface Build {
  spec: BuildSpec;
  source: BuildSource;
  /** Text that the builder gets instead of the repository's Dockerfile. */
  dockerfile: string;
  tag: string;
  buildkit: boolean;
}

/** Build options for the engine. Build arguments go in the request, so no secret is on a command line. */
function buildOptions({ spec, source, tag, buildkit }: Omit<Build, 'dockerfile'>): Docker.ImageBuildOptions {
  const scope = cacheScope(spec);
  return {
    t: tag,
    dockerfile: source.dockerfileName,
    buildargs: {
      ...spec.arguments,
      [SCOPE_ARGUMENT]: scope,
      ...(buildkit ? { BUILDKIT_CACHE_MOUNT_NS: scope } : {}),
    },
    labels: { ...identityLabels(spec.identity), [LABEL.cacheKey]: spec.cacheKey },
    rm: true,
    forcerm: true,
    ...(spec.targetStage === null ? {} : { target: spec.targetStage }),
    ...(buildkit ? {} : classicLimits(spec)),
  };
}

/** Leaves out the arguments that configure the builder itself. */
function withoutBuilders(given: Record<string, string>, { log }: RuntimeContext): Record<string, string> {
  const taken = Object.keys(given).filter((name) => /^BUILDKIT_/i.test(name));
  if (taken.length > 0) log(`Build arguments that are the builder's own are left out: ${taken.join(', ')}.`);
  return Object.fromEntries(Object.entries(given).filter(([name]) => !taken.includes(name)));
}

async function readDockerfile({ dockerfile }: BuildSource, path: string): Promise<string> {
  const bytes = await readFile(dockerfile);
  if (!isUtf8(bytes)) throw new RuntimeError('build_failed', `The Dockerfile ${path} must be text in UTF-8.`);
  return bytes.toString();
}

function pinOptions(
  { organizationId }: WorkloadIdentity,
  about: EngineAbout,
  given: Record<string, string>,
): PinOptions {
  const platform = `linux/${about.architecture}`;
  const parts = (name: string) => ({
    [`${name}PLATFORM`]: platform,
    [`${name}OS`]: 'linux',
    [`${name}ARCH`]: about.architecture,
    [`${name}VARIANT`]: '',
  });
  return {
    organizationId,
    variables: about.buildkit ? { ...parts('BUILD'), ...parts('TARGET'), ...given } : given,
    separatesCaches: about.buildkit,
    hereDocuments: about.hereDocuments,
    platform,
  };
}

const classicLimits = ({ resources }: BuildSpec): Docker.ImageBuildOptions => ({
  memory: resources.memoryMib * 2 ** 20,
  memswap: resources.memoryMib * 2 ** 20,
  cpuperiod: 100_000,
  cpuquota: resources.cpuMilli * 100,
});

async function runBuild(node: DockerNode, build: Build, context: RuntimeContext): Promise<void> {
  const { spec } = build;
  const deadline = AbortSignal.timeout(spec.timeoutSeconds * 1000);
  const abortSignal = anySignal([context.signal, deadline]);
  const lines: string[] = [];
  const progress = new BuildProgress((line) => {
    context.log(line);
    if (lines.push(line) > LAST_LINES) lines.shift();
  });
  try {
    await using session = build.buildkit ? await openSession(node.engine, spec, abortSignal) : null;
    const options = { ...buildOptions(build), ...session?.options, abortSignal } as Docker.ImageBuildOptions;
    const stream = (await node.engine.buildImage(
      await packContext(build.source, build.dockerfile),
      options,
    )) as unknown as Readable;
    stream.setEncoding('utf8');
    for await (const part of stream) progress.write(part as string);
    progress.end();
  } catch (error) {
    if (context.signal.aborted) throw cancelled(error);
    if (deadline.aborted)
      throw new RuntimeError(
        'build_failed',
        `The build did not end within ${spec.timeoutSeconds} s and was ended.`,
        error,
      );
    const known = asRuntimeError(error);
    if (known.code === 'unreachable') throw known;
    throw new RuntimeError('build_failed', maskOf(spec.secrets)(engineMessage(error)), error);
  }
  if (progress.error === null) return;
  const message = `${progress.error}\n${lines.map((line) => `  ${line}`).join('\n')}`;
  throw new RuntimeError('build_failed', maskOf(spec.secrets)(message));
}

/**
 * Removes images built for a service: all of them, or the given ids and names. Given pulled images are removed, too, if unused. An image
 * with a name from elsewhere keeps that name; an image that also came from a registry stays. Throws RuntimeError `failed` if a container
 * still uses one of them.
 */
export async function removeImages(
  node: DockerNode,
  identity: WorkloadIdentity,
  which: string[] | 'all',
): Promise<void> {
  if (which !== 'all') await removePulled(node, which);
  const images = await findImages(node, { [LABEL.service]: identity.serviceId });
  const used: string[] = [];
  for (const image of images) {
    const tags = (image.RepoTags ?? []).filter((name) => name !== '<none>:<none>');
    const names = tags.filter((name) => name.startsWith(`${imageRepository(identity.serviceId)}:`));
    if (which !== 'all' && ![image.Id, ...names].some((name) => which.includes(name))) continue;
    const elsewhere = (image.RepoDigests ?? []).some((name) => !name.startsWith(imageRepository(identity.serviceId)));
    for (const name of tags.length > 0 || elsewhere ? names : [image.Id])
      if (!(await removeImage(node, name))) used.push(name);
  }
  if (used.length > 0)
    throw new RuntimeError('failed', `Still in use by a container, so not removed: ${used.join(', ')}.`);
}

/** Removes an image; returns false if a container uses it. A missing image is no error. */
export async function removeImage(node: DockerNode, name: string): Promise<boolean> {
  try {
    await unless([404], node.engine.getImage(name).remove());
    return true;
  } catch (error) {
    if (statusOf(error) !== 409) throw error;
    return false;
  }
}
