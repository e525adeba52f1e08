import { fieldsOfMount } from '#kernel/parsing/mount-fields.ts';
import { expandWord, splitWords } from '#kernel/parsing/dockerfile-words.ts';
import { dockerfileFault, scanDockerfile, triggerOf, type Instruction } from '#kernel/parsing/dockerfile-scan.ts';
import type { DockerfileReach, ImageReference, ReachOptions } from '#kernel/parsing/formats.ts';

interface Finding extends Pick<DockerfileReach, 'escape' | 'images' | 'aliases' | 'hosts'>, ReachOptions {
  /** Names of the stages so far; null for those without one. */
  stages: (string | null)[];
  /** Variables of the ARGs before the first FROM. */
  globals: Record<string, string | undefined>;
}

/** Placeholder for a variable whose value only the builder knows. */
const UNKNOWN = '\0';

/** Images that one Dockerfile may name: a registry is asked for each. */
const MOST_IMAGES = 200;

/**
 * Reads a Dockerfile and finds what it takes from outside. Throws Error for what no tenant may ask of a shared builder: the machine's
 * network, privileges and devices.
 */
export function findReach(text: string, options: ReachOptions): DockerfileReach {
  const { instructions, ...head } = scanDockerfile(text, options.hereDocuments);
  const finding: Finding = {
    ...options,
    escape: head.escape,
    images: [],
    aliases: [],
    hosts: [],
    stages: [],
    globals: {},
  };
  for (const instruction of instructions) {
    read(instruction, finding);
    if (finding.images.length > MOST_IMAGES)
      throw dockerfileFault(instruction.first, `a Dockerfile may name at most ${MOST_IMAGES} images.`);
  }
  return {
    ...head,
    images: finding.images,
    aliases: finding.aliases,
    hosts: finding.hosts,
    stageLines: instructions.filter(({ keyword }) => keyword === 'FROM').map(({ last }) => last),
    hasTriggers: instructions.some(({ keyword }) => keyword === 'ONBUILD'),
  };
}

/** Instruction that takes an option by which a build reaches images, the network or the machine. */
const TAKEN_BY: Record<string, string> = { from: 'COPY', mount: 'RUN', network: 'RUN', security: 'RUN', device: 'RUN' };

/** Throws Error for an option of `TAKEN_BY` on another instruction or without `=`: a builder could be less strict than most. */
function refuseMisplaced({ keyword, flags, first }: Instruction): void {
  for (const flag of flags) {
    const [, written = '', equals] = /^--([a-z]+)\b(=?)/i.exec(flag) ?? [];
    const name = written.toLowerCase();
    const owner = TAKEN_BY[name];
    if (owner === undefined) continue;
    if (owner !== keyword) throw dockerfileFault(first, `--${name} is an option of ${owner}, not of ${keyword}.`);
    if (!equals) throw dockerfileFault(first, `${flag}: must have its value behind "=", as in --${name}=value.`);
  }
}

/** Reads the instruction that an ONBUILD holds. Throws Error for those that every builder refuses there. */
function readTrigger(instruction: Instruction, finding: Finding): void {
  const trigger = triggerOf(instruction);
  if (['ONBUILD', 'FROM', 'MAINTAINER'].includes(trigger.keyword))
    throw dockerfileFault(instruction.first, `${trigger.keyword} is not allowed behind ONBUILD.`);
  read(trigger, finding);
}

function read(instruction: Instruction, finding: Finding): void {
  refuseMisplaced(instruction);
  switch (instruction.keyword) {
    case 'FROM':
      return readFrom(instruction, finding);
    case 'ARG':
      if (finding.stages.length === 0) declare(instruction, finding);
      return;
    case 'ADD':
      return readSources(instruction, finding);
    case 'COPY':
      return readCopy(instruction, finding);
    case 'RUN':
      return readRun(instruction, finding);
    case 'ONBUILD':
      return readTrigger(instruction, finding);
  }
}

function declare({ rest }: Instruction, { globals, variables, escape }: Finding): void {
  for (const word of splitWords(rest, (name) => globals[name] ?? variables[name], escape)) {
    const at = word.indexOf('=');
    const name = at < 0 ? word : word.slice(0, at);
    globals[name] = variables[name] ?? (at < 0 ? undefined : word.slice(at + 1));
  }
}

function readFrom(instruction: Instruction, finding: Finding): void {
  const { globals, variables, escape, stages, images, aliases } = finding;
  const lookup = (name: string) => globals[name] ?? variables[name];
  const [written = '', as, stage, ...more] = instruction.rest.split(/[\t\v\f\r ]+/);
  if (written === '' || more.length > 0 || (as !== undefined && (as.toUpperCase() !== 'AS' || !stage)))
    throw dockerfileFault(instruction.first, 'must be "FROM image" or "FROM image AS name".');
  const name = expandWord(written, lookup, escape);
  if (name === '')
    throw dockerfileFault(
      instruction.first,
      `FROM ${written} names no image: give its ARG a default, or set a variable of that name.`,
    );
  const platform = optionOf(instruction, 'platform');
  const reference = { lines: linesOf(instruction), written, name, where: 'FROM' as const };
  if (!stages.includes(name.toLowerCase()) && name !== 'scratch')
    images.push({ ...reference, platform: platform === undefined ? null : expandWord(platform, lookup, escape) });
  else if (written !== name) aliases.push(reference);
  stages.push(stage?.toLowerCase() ?? null);
}

const linesOf = ({ first, last }: Instruction): ImageReference['lines'] => ({ first, last });

const optionOf = ({ flags }: Instruction, name: string): string | undefined =>
  flags.findLast((flag) => flag.toLowerCase().startsWith(`--${name}=`))?.slice(name.length + 3);

function readCopy(instruction: Instruction, finding: Finding): void {
  for (const flag of instruction.flags)
    if (/^--from=/i.test(flag)) readSource(instruction, '--from', flag.slice('--from='.length), finding);
}

/** Reads the image or stage that files are taken from. */
function readSource(instruction: Instruction, where: '--from' | '--mount', written: string, finding: Finding): void {
  if (written.includes('$'))
    throw dockerfileFault(
      instruction.first,
      `${written}: an image that files are taken from is named without variables. Name it in a FROM … AS stage, and take them from that stage.`,
    );
  // The stage that is under way is none to take from: some builders would look for an image of its name.
  const before = finding.stages.slice(0, -1);
  const isNumber = /^\d+$/.test(written);
  if (before.includes(written.toLowerCase()) || (isNumber && Number(written) < before.length)) return;
  if (isNumber || written === '') throw dockerfileFault(instruction.first, `${where} names no stage before it.`);
  finding.images.push({ lines: linesOf(instruction), written, name: written, where, platform: null });
}

/** Options of RUN by which it would leave its sandbox. */
const SHUT: Record<string, string[]> = { network: ['default', 'none'], security: ['sandbox'], device: [] };

function readRun(instruction: Instruction, finding: Finding): void {
  for (const flag of instruction.flags) {
    const [, name = '', value = ''] = /^--([^=]+)=?([^]*)$/.exec(flag) ?? [];
    const allowed = SHUT[name.toLowerCase()];
    if (allowed && !allowed.includes(value))
      throw dockerfileFault(
        instruction.first,
        `RUN ${flag} is not allowed on a shared builder${allowed.length > 0 ? `; allowed: ${allowed.join(', ')}` : ''}.`,
      );
    if (name.toLowerCase() === 'mount') readMount(instruction, value, finding);
  }
}

function readMount(instruction: Instruction, value: string, finding: Finding): void {
  if (value.includes('"')) throw dockerfileFault(instruction.first, `--mount=${value}: must have no quotes.`);
  const fields = fieldsOfMount(value);
  for (const [key, from = ''] of fields) if (key === 'from') readSource(instruction, '--mount', from, finding);
  if (!finding.separatesCaches && fields.some(([key, type = '']) => key === 'type' && /secret/i.test(type)))
    throw dockerfileFault(
      instruction.first,
      'RUN --mount=type=secret takes Docker Engine with BuildKit: this builder asks for no secrets.',
    );
  const isCache = fields.some(([key, type = '']) => key === 'type' && (/cache/i.test(type) || type.includes('$')));
  if (isCache && !finding.separatesCaches)
    throw dockerfileFault(
      instruction.first,
      'RUN --mount=type=cache takes Docker Engine with BuildKit: this builder would share the cache with other organizations.',
    );
}

/**
 * Finds the hosts that ADD fetches from; its other sources are files of the context. Each source is read with either escape character:
 * builders expand the trigger of an image with the one of the file that names the image.
 */
function readSources(instruction: Instruction, { hosts }: Finding): void {
  const found = new Set<string>();
  for (const word of sourcesOf(instruction))
    for (const escape of ['\\', '`']) {
      const host = hostOf(
        expandWord(word, () => undefined, escape),
        instruction.first,
      );
      if (host !== undefined) found.add(host);
    }
  for (const host of found) hosts.push({ host, line: instruction.first });
}

/** Splits the sources of ADD as builders do, quotes and escapes unresolved. A variable and all behind it are one `UNKNOWN`. */
function sourcesOf({ rest, first }: Instruction): string[] {
  // Quotes keep no blanks here: builders cut first, and resolve the quotes of each word then.
  const words = readList(rest, first) ?? rest.split(/[\t\v\f\r ]+/);
  return words.slice(0, -1).map((word) => word.replace(/\$[^]*/, UNKNOWN));
}

/** Reads the JSON form of an instruction; null for text. */
function readList(rest: string, line: number): string[] | null {
  if (!rest.startsWith('[')) return null;
  const list = parseList(rest);
  if (list !== null) return list;
  // Some builders read the list at the beginning and ignore what follows; others take all of it as text.
  if (rest.includes('"')) throw dockerfileFault(line, 'what begins with [ must be a JSON array of strings.');
  return null;
}

function parseList(text: string): string[] | null {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((word) => typeof word === 'string') ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Host of a URL or git address; undefined for a path. Throws Error for a source that could be either. */
function hostOf(source: string, line: number): string | undefined {
  const [first = ''] = source.split('/');
  if (first.includes(UNKNOWN))
    throw dockerfileFault(
      line,
      'a source of ADD begins with a variable: write ./ before it for a file, or scheme and host of its URL without variables.',
    );
  if (!first.includes(':')) return undefined;
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(source)?.[1] ?? /^([^@:]+@[^@:]+):/.exec(first)?.[1];
  if (authority === undefined)
    throw dockerfileFault(
      line,
      `${first}: a source of ADD must be a URL such as https://example.com/file, or user@host:path; write ./ before the name of a file.`,
    );
  if (authority.includes(UNKNOWN))
    throw dockerfileFault(line, 'the host of a URL in ADD must be written without variables.');
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '');
  if (!/^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/i.test(host))
    throw dockerfileFault(line, `ADD from ${authority}: "${host}" is not the name of a host: it must be ASCII.`);
  return host;
}
