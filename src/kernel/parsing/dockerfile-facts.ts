import { DockerfileParser, type Instruction, type ModifiableInstruction } from 'dockerfile-ast';
import { secretMountOf } from '#kernel/parsing/secret-mount.ts';
import type { DockerfileFacts } from '#kernel/parsing/formats.ts';

/** Lists what a Dockerfile needs from outside; null for a text that is none (no FROM). */
export function inspectDockerfile(text: string): DockerfileFacts | null {
  const dockerfile = DockerfileParser.parse(text);
  const froms = dockerfile.getFROMs();
  if (froms.length === 0) return null;
  const declared = dockerfile.getARGs().flatMap((arg) => arg.getPropertyArguments());
  const defaults = new Map(
    dockerfile
      .getInitialARGs()
      .flatMap((arg) => arg.getProperties().map((one) => [one.getName(), one.getValue()] as const)),
  );
  const stages = new Set(froms.flatMap((from) => from.getBuildStage()?.toLowerCase() ?? []));
  const images = [
    ...froms.map((from) => from.getImage()),
    ...dockerfile.getCOPYs().map((copy) => copy.getFromFlag()?.getValue() ?? null),
  ];
  const repositories = images
    .map((image) => image && substitute(image, defaults))
    .filter((image): image is string => !!image && image !== 'scratch')
    .filter((image) => !stages.has(image.toLowerCase()) && !/^\d+$/.test(image))
    .map(withoutTag);
  return {
    args: unique(declared.map((one) => one.getValue().split('=')[0]!)),
    secrets: unique(dockerfile.getInstructions().flatMap(secretsOf)),
    repositories: unique(repositories),
  };
}

/** Returns the ids of the secrets that an instruction mounts. */
function secretsOf(instruction: Instruction): string[] {
  if (instruction.getKeyword() !== 'RUN') return [];
  const mounts = (instruction as ModifiableInstruction).getFlags().filter((flag) => flag.getName() === 'mount');
  return mounts.flatMap((mount) => secretMountOf(mount.getValue() ?? '')?.id ?? []);
}

/** Replaces the ARGs before the first FROM by their defaults in an image's name; undefined if one has none, since only a build knows it. */
function substitute(image: string, defaults: Map<string, string | null>): string | undefined {
  let known = true;
  const text = image.replaceAll(/\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))/g, (_all, braced, fallback, bare) => {
    const value = defaults.get(braced ?? bare) ?? fallback;
    if (!value) known = false;
    return value ?? '';
  });
  return known ? text : undefined;
}

/** `registry:5000/a/b:tag@sha256:…` as `registry:5000/a/b`. */
function withoutTag(image: string): string {
  const name = image.split('@')[0]!;
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') ? name.slice(0, colon) : name;
}

const unique = (values: string[]): string[] => [...new Set(values)];
