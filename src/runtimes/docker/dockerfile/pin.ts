import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import type { DockerfileReach, ImageReference, ReachOptions } from '#kernel/parsing/formats.ts';
import { RuntimeError, type BuildContext } from '#runtimes/runtime.ts';

/** Build argument in every stage, whose value keeps the layers of organizations apart in the builder's cache. */
export const SCOPE_ARGUMENT = 'QUARTERDECK_BUILD_SCOPE';

export interface PinOptions extends ReachOptions {
  /** Organization that owns the Dockerfile. */
  organizationId: string;
  /** Platform of the engine, such as `linux/amd64`. */
  platform: string;
}

/**
 * Makes a Dockerfile safe for a builder that tenants share: every image is one that a registry answered to the organization, named by its
 * digest; no frontend but the builder's own reads the file; layers of different organizations have different cache keys. Throws
 * RuntimeError `build_failed` that names the line.
 */
export async function pinDockerfile(
  text: string,
  options: PinOptions,
  context: Pick<BuildContext, 'resolveImage' | 'checkHost' | 'log'>,
): Promise<string> {
  const file = await reachOf(text, options);
  const { images, aliases, hosts } = file;
  for (const { host, line } of hosts) await explained(line, `ADD from ${host}`, () => context.checkHost(host));
  const lines = [...file.lines];
  const pinned = new Set<string>();
  for (const image of images) {
    const reference = await resolve(image, options, context);
    pinned.add(reference);
    replace(lines, image, reference);
  }
  // Builders disagree on which variables a FROM knows: one could find an image where another finds the stage.
  for (const alias of aliases) replace(lines, alias, alias.name);
  if (file.syntax !== null)
    context.log(`# syntax=${file.syntax} is not followed: the builder's own frontend reads every Dockerfile.`);
  const made = assemble(file, lines);
  await refuseOthers(made, pinned, options);
  return made;
}

/** Parses a Dockerfile in a separate thread. Throws RuntimeError `build_failed` that names the faulty line. */
async function reachOf(text: string, options: PinOptions): Promise<DockerfileReach> {
  const { organizationId, variables, separatesCaches, hereDocuments } = options;
  const file = { name: 'Dockerfile', text };
  try {
    return await readFileOf(organizationId, 'dockerfile-reach', file, { variables, separatesCaches, hereDocuments });
  } catch (error) {
    if (!(error instanceof ParsingError)) throw error;
    const message = error.kind === 'fault' ? error.problem : error.message;
    throw new RuntimeError('build_failed', message, error);
  }
}

const dockerfileError = (line: number, message: string): RuntimeError =>
  new RuntimeError('build_failed', `Dockerfile line ${line + 1}: ${message}`);

async function resolve(
  { name, platform, lines: { first } }: ImageReference,
  options: PinOptions,
  context: Pick<BuildContext, 'resolveImage' | 'checkHost' | 'log'>,
): Promise<string> {
  const asked = platform === null || platform === '' ? options.platform : platform;
  const base = await explained(first, name, () => context.resolveImage(name, asked));
  for (const trigger of base.onBuild) {
    const { images, hosts, hasTriggers } = await reachOf(trigger, { ...options, hereDocuments: false });
    if (images.length > 0 || hosts.length > 0 || hasTriggers)
      throw dockerfileError(
        first,
        `the image ${name} brings the instruction ONBUILD ${trigger}, which takes something from outside of the build: choose another image.`,
      );
  }
  context.log(`${name} is ${base.reference}.`);
  return base.reference;
}

/** Prefixes an error with the line. */
async function explained<T>(line: number, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw dockerfileError(line, `${what}: ${(error as Error).message}`);
  }
}

/** Replaces the name of an image by a pinned reference. */
function replace(
  lines: string[],
  { lines: { first, last }, written, where }: DockerfileReach['aliases'][number],
  reference: string,
): void {
  const name = written.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  const blank = String.raw`[\t\v\f\r ]`;
  const before = { FROM: `^|${blank}`, '--from': `(^|${blank})--from=`, '--mount': '[=,]from=' }[where];
  const place = new RegExp(`(?<=${before})${name}(?=${blank}|,|$)`, 'i');
  for (let at = first; at <= last; at++) {
    const line = lines[at]!;
    if (!place.test(line)) continue;
    lines[at] = line.replace(place, () => reference);
    return;
  }
  throw dockerfileError(first, `${written}: the name of an image must be written in one line, without quotes.`);
}

function assemble(file: DockerfileReach, lines: string[]): string {
  const stages = new Set(file.stageLines);
  const made = lines.flatMap((line, at) => {
    // Only the first line may still be a directive, and this program writes it.
    if (at < file.directives) return [at === 0 && file.escape !== '\\' ? `# escape=${file.escape}` : '#'];
    return stages.has(at) ? [line, `ARG ${SCOPE_ARGUMENT}`] : [line];
  });
  return made.join('\n');
}

/** Parses the result again: an image that was not pinned must not get through, whatever the file looks like. */
async function refuseOthers(text: string, pinned: Set<string>, options: PinOptions): Promise<void> {
  const { images, aliases } = await reachOf(text, options);
  const others = images.filter(({ name }) => !pinned.has(name));
  for (const { name, lines } of [...others, ...aliases])
    throw dockerfileError(lines.first, `${name}: the name of an image must be written in one line, without quotes.`);
}
