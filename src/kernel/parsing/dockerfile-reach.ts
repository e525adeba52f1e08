import { expandWord, splitWords } from '#kernel/parsing/dockerfile-words.ts';
import { dockerfileFault, scanDockerfile, triggerOf, type Instruction } from '#kernel/parsing/dockerfile-scan.ts';
import type { DockerfileReach, ImageReference, ReachOptions } from '#kernel/parsing/formats.ts';

interface Finding extends Pick<DockerfileReach, 'images' | 'hosts'>, ReachOptions {
  /** Names of the stages so far; null for those without one. */
  stages: (string | null)[];
  /** Variables of the ARGs before the first FROM. */
  globals: Record<string, string | undefined>;
}

/** Stands for a variable in a word whose value only the builder knows. */
const UNKNOWN = '\0';

/** Images that one Dockerfile may name: a registry is asked for each. */
const MOST_IMAGES = 200;

/**
 * Reads a Dockerfile and finds what it takes from outside. Throws Error for what no tenant may ask of a shared builder: the machine's
 * network, privileges and devices.
 */
export function findReach(text: string, options: ReachOptions): DockerfileReach {
  const { instructions, ...head } = scanDockerfile(text, options.hereDocuments);
  const finding: Finding = { ...options, images: [], hosts: [], stages: [], globals: {} };
  for (const instruction of instructions) {
    read(instruction, finding);
    if (finding.images.length > MOST_IMAGES)
      throw dockerfileFault(instruction.first, `a Dockerfile may name at most ${MOST_IMAGES} images.`);
  }
  return {
    ...head,
    images: finding.images,
    hosts: finding.hosts,
    stageLines: instructions.filter(({ keyword }) => keyword === 'FROM').map(({ last }) => last),
    hasTriggers: instructions.some(({ keyword }) => keyword === 'ONBUILD'),
  };
}

function read(instruction: Instruction, finding: Finding): void {
  switch (instruction.keyword) {
    case 'FROM':
      return readFrom(instruction, finding);
    case 'ARG':
      if (finding.stages.length === 0) declare(instruction, finding);
      return;
    case 'ADD':
      readSources(instruction, finding);
      return readCopy(instruction, finding);
    case 'COPY':
      return readCopy(instruction, finding);
    case 'RUN':
      return readRun(instruction, finding);
    case 'ONBUILD':
      return read(triggerOf(instruction), finding);
  }
}

function declare({ rest }: Instruction, { globals, variables }: Finding): void {
  for (const word of splitWords(rest, (name) => globals[name] ?? variables[name])) {
    const at = word.indexOf('=');
    const name = at < 0 ? word : word.slice(0, at);
    globals[name] = variables[name] ?? (at < 0 ? undefined : word.slice(at + 1));
  }
}

function readFrom(instruction: Instruction, finding: Finding): void {
  const { globals, variables, stages, images } = finding;
  const lookup = (name: string) => globals[name] ?? variables[name];
  const [written = '', as, stage, ...more] = instruction.rest.split(/[\t\v\f\r ]+/);
  if (written === '' || more.length > 0 || (as !== undefined && (as.toUpperCase() !== 'AS' || !stage)))
    throw dockerfileFault(instruction.first, 'must be "FROM image" or "FROM image AS name".');
  const name = expandWord(written, lookup);
  if (name === '')
    throw dockerfileFault(
      instruction.first,
      `FROM ${written} names no image: give its ARG a default, or set a variable of that name.`,
    );
  const platform = optionOf(instruction, 'platform');
  if (!stages.includes(name.toLowerCase()) && name !== 'scratch')
    images.push({
      lines: linesOf(instruction),
      written,
      name,
      where: 'FROM',
      platform: platform === undefined ? null : expandWord(platform, lookup),
    });
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
  const fields = value.split(',').map((field) => {
    const at = field.indexOf('=');
    return at < 0
      ? ([field.trim().toLowerCase(), ''] as const)
      : ([field.slice(0, at).trim().toLowerCase(), field.slice(at + 1)] as const);
  });
  for (const [key, from] of fields) if (key === 'from') readSource(instruction, '--mount', from, finding);
  const isCache = fields.some(([key, type]) => key === 'type' && (/cache/i.test(type) || type.includes('$')));
  if (isCache && !finding.separatesCaches)
    throw dockerfileFault(
      instruction.first,
      'RUN --mount=type=cache takes Docker Engine with BuildKit: this builder would share the cache with other organizations.',
    );
}

/** Finds the hosts that ADD fetches from; its other sources are files of the context. */
function readSources(instruction: Instruction, { hosts }: Finding): void {
  for (const word of sourcesOf(instruction).slice(0, -1)) {
    const [first = ''] = word.split('/');
    if (first.includes(UNKNOWN))
      throw dockerfileFault(
        instruction.first,
        'a source of ADD begins with a variable: write ./ before it for a file, or scheme and host of its URL without variables.',
      );
    const host = hostOf(word);
    if (host === undefined) continue;
    if (host === '' || host.includes(UNKNOWN))
      throw dockerfileFault(instruction.first, 'the host of a URL in ADD must be written without variables.');
    hosts.push({ host, line: instruction.first });
  }
}

/** Sources and destination, variables marked. */
function sourcesOf({ rest }: Instruction): string[] {
  // A variable that is unset may have a fallback: its text is unknown all the same.
  const marked = rest.replaceAll(/\$(\{[^}]*\}|[A-Za-z_]\w*)/g, UNKNOWN);
  if (marked.startsWith('['))
    try {
      return (JSON.parse(marked.replaceAll(UNKNOWN, '\\u0000')) as unknown[]).map(String);
    } catch (error) {
      // What looks like a list but is none is text, as for builders.
      if (!(error instanceof SyntaxError)) throw error;
    }
  return splitWords(marked, () => undefined);
}

/** Host of a URL or git address; undefined for a path. */
function hostOf(source: string): string | undefined {
  const url = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@]*@)?(\[[^\]]*\]|[^/:?#]*)/i.exec(source);
  return url?.[1] ?? /^[^/@\s]+@([^/:]+):/.exec(source)?.[1];
}
