import type { ImageConfig } from '#runtimes/host/images.ts';
import { HOME } from '#runtimes/host/view/plan.ts';
import { RuntimeError, type WorkloadSpec } from '#runtimes/runtime.ts';

/** The program that an instance runs: an entry point of the service leaves the image's command out, as with Docker. */
export function commandLine(spec: WorkloadSpec, config: ImageConfig): string[] {
  const own = spec.entrypoint.length > 0;
  const entrypoint = own ? spec.entrypoint : config.entrypoint;
  const rest = own || spec.arguments.length > 0 ? spec.arguments : config.command;
  const line = [...entrypoint, ...rest];
  if (line.length === 0)
    throw new RuntimeError('refused', 'The Dockerfile has neither CMD nor ENTRYPOINT; give the service arguments.');
  return line;
}

/** The whole environment of an instance. `port` is what the runtime gives as PORT. */
export function environmentOf(
  spec: WorkloadSpec,
  config: ImageConfig,
  given: { hostname: string; port: number | null },
): Record<string, string> {
  const port: Record<string, string> = given.port === null ? {} : { PORT: String(given.port) };
  return { HOME, HOSTNAME: given.hostname, ...config.env, ...spec.environment, ...port };
}
