import type { ImageConfig } from '#runtimes/host/images.ts';
import { HOME } from '#runtimes/host/view/plan.ts';
import { RuntimeError, type ProgramSpec } from '#runtimes/runtime.ts';

/** Returns the program that an instance runs. An entry point of the service replaces the image's command too, as with Docker. */
export function commandLine(spec: ProgramSpec, config: ImageConfig): string[] {
  const own = spec.entrypoint.length > 0;
  const entrypoint = own ? spec.entrypoint : config.entrypoint;
  const rest = own || spec.arguments.length > 0 ? spec.arguments : config.command;
  const line = [...entrypoint, ...rest];
  if (line.length === 0)
    throw new RuntimeError(
      'refused',
      'The Dockerfile has neither CMD nor ENTRYPOINT, and those of the image in FROM are not known: the host runtime pulls no images. Add a CMD, or give the service arguments, or use a docker cluster.',
    );
  return line;
}

/**
 * Returns the whole environment of an instance. `port` is the runtime's value of PORT: it overrides the image's, and also the service's if
 * `forced`.
 */
export function environmentOf(
  spec: ProgramSpec,
  config: ImageConfig,
  given: { hostname: string; port: number | null; forced: boolean },
): Record<string, string> {
  const port: Record<string, string> = given.port === null ? {} : { PORT: String(given.port) };
  const common = { HOME, HOSTNAME: given.hostname, ...config.env, ...port, ...spec.environment };
  return given.forced ? { ...common, ...port } : common;
}
