import type { ImageBuilder } from '#runtimes/image-store.ts';
import { NO_ROUTER } from '#runtimes/no-router.ts';
import { diskLimits } from '#runtimes/tools/disk-limits.ts';
import { DEFAULT_POOL } from './address-pool.ts';
import { buildImage, imageTag, removeImage, removeImages } from './build.ts';
import { pruneBuilds } from './caches.ts';
import { connect } from './connect.ts';
import { LOOPBACK } from './container-config.ts';
import { DEFAULT_EGRESS_IMAGE } from './egress.ts';
import { asRuntimeError } from './errors.ts';
import { makeNode } from './node.ts';
import { pushImage } from './push.ts';

export interface DockerBuilderOptions {
  /** Id of this installation: images without it in their labels are never touched. */
  installation: string;
  /** Value of `DOCKER_HOST`; empty for the usual sockets. */
  dockerHost: string;
  /** Most megabytes of a built image. */
  buildLimitMb: number;
  /** Megabytes of the engine's disk that stay free. */
  diskReserveMb: number;
  /** Most megabytes of the cache of builds; 0 for no limit. */
  buildCacheLimitMb: number;
  /** Receives lines for the operator that belong to no deployment. */
  log(line: string): void;
}

/** Milliseconds between two looks at the size of the cache of builds. */
const TRIM_MS = 10 * 60_000;
const TRIM_TIMEOUT_MS = 180_000;

/** Creates the builder on an engine, by the same rules as the runtime `docker`. */
export function builderOn(
  address: { host: string } | { socketPath: string },
  options: DockerBuilderOptions,
): ImageBuilder {
  const { installation, log, buildCacheLimitMb } = options;
  const node = makeNode(connect(address), {
    installation,
    router: NO_ROUTER,
    pool: DEFAULT_POOL,
    egressImage: DEFAULT_EGRESS_IMAGE,
    publishAddress: 'host' in address ? new URL(address.host).hostname : LOOPBACK,
    buildDisk: diskLimits(options, options.buildLimitMb),
    supervise: () => Promise.resolve(),
    log,
  });
  let trimmedAt = 0;
  /** Keeps the cache of builds below its limit: on a machine without a cluster of its own nobody else does. */
  const trim = async () => {
    if (buildCacheLimitMb === 0 || Date.now() - trimmedAt < TRIM_MS) return;
    trimmedAt = Date.now();
    try {
      await pruneBuilds(node.engine, buildCacheLimitMb * 2 ** 20, AbortSignal.timeout(TRIM_TIMEOUT_MS));
    } catch (error) {
      log(`The cache of builds cannot be trimmed: ${asRuntimeError(error).message}`);
    }
  };
  return {
    architecture: async () => (await answer(node.about())).architecture,
    build: (spec, context) => answer(buildImage(node, spec, context), context.signal),
    push: async (image, target, { identity, cacheKey }, context) => {
      try {
        return await answer(pushImage(node, image, target, context), context.signal);
      } finally {
        // Also after a failure: the layers stay in the cache, and nobody else would remove the image.
        await answer(removeImage(node, imageTag(identity.serviceId, cacheKey)));
        await trim();
      }
    },
    discard: (identity) => answer(removeImages(node, identity, 'all')),
  };
}

async function answer<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw asRuntimeError(error, signal);
  }
}
