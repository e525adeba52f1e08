import type { ImageBuilder } from '#runtimes/image-store.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { DockerBuilderOptions } from './builder-engine.ts';
import { addressOfEngine } from './socket.ts';

/**
 * Creates the builder on a Docker Engine or Podman that this machine reaches, which is looked for with each call. The engine's client is
 * loaded with the first call that finds one.
 */
export function createDockerBuilder(options: DockerBuilderOptions): ImageBuilder {
  let known: { address: string; engine: Promise<ImageBuilder> } | undefined;
  const open = async (): Promise<ImageBuilder> => {
    const found = await addressOfEngine(options.dockerHost || undefined);
    if (!found)
      throw new RuntimeError(
        'unreachable',
        'No Docker Engine or Podman, which would build the image, answers on the machine of the worker: start one, or set DOCKER_HOST.',
      );
    const address = JSON.stringify(found);
    if (known?.address !== address)
      known = { address, engine: import('./builder-engine.ts').then((module) => module.builderOn(found, options)) };
    return known.engine;
  };
  return {
    architecture: async () => (await open()).architecture(),
    build: async (spec, context) => (await open()).build(spec, context),
    push: async (image, target, spec, context) => (await open()).push(image, target, spec, context),
    discard: async (identity) => (await open()).discard(identity),
  };
}
