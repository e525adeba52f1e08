import { posix } from 'node:path';
import {
  cutAt,
  declareArguments,
  dockerfileError,
  pairs,
  stageIndex,
  type Instruction,
  type ParsedDockerfile,
  type Stage,
} from '#runtimes/host/build/dockerfile.ts';
import { parseHealth } from '#runtimes/host/build/health.ts';
import type { StageTree } from '#runtimes/host/build/stage-tree.ts';
import { secretMountOf, type SecretMount } from '#kernel/parsing/secret-mount.ts';
import { expandWord, splitWords } from '#kernel/parsing/dockerfile-words.ts';
import type { ImageConfig } from '#runtimes/host/images.ts';
import { HOME, OURS } from '#runtimes/host/view/plan.ts';
import { DEFAULT_PATH } from '#runtimes/tools/command.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Build context: the files that COPY may read. */
export interface BuildContext {
  /** Real path of the context's folder. */
  folder: string;
  /** Real path of the checkout; links are followed within it only. */
  checkout: string;
  ignore: string[];
}

/** A stage that is built, or being built. */
export interface BuiltStage {
  tree: StageTree;
  config: ImageConfig;
  shell: string[];
  workdirs: string[];
}

export const emptyConfig = (): ImageConfig => ({
  env: { PATH: `${DEFAULT_PATH}:${OURS}/bin` },
  workdir: '/',
  entrypoint: [],
  command: [],
  ports: [],
  health: null,
  stopSignal: 'SIGTERM',
});

const COPY_FLAGS = new Set([
  'from',
  'chown',
  'chmod',
  'link',
  'parents',
  'exclude',
  'checksum',
  'keep-git-dir',
  'unpack',
]);
const COPY_FLAGS_USED = new Set(['from', 'chown', 'chmod', 'link']);

/** Executes the instructions of one stage. */
export class StageBuilder {
  readonly #file: ParsedDockerfile;
  readonly #stage: Stage;
  readonly #built: BuiltStage;
  readonly #context: BuildContext;
  readonly #given: Record<string, string>;
  readonly #secrets: Record<string, string>;
  readonly #stages: (BuiltStage | undefined)[];
  readonly #log: (line: string) => void;
  readonly #arguments: Record<string, string | undefined> = {};
  #user: string | null = null;

  constructor(options: {
    file: ParsedDockerfile;
    stage: Stage;
    built: BuiltStage;
    context: BuildContext;
    given: Record<string, string>;
    secrets: Record<string, string>;
    stages: (BuiltStage | undefined)[];
    log: (line: string) => void;
  }) {
    this.#file = options.file;
    this.#stage = options.stage;
    this.#built = options.built;
    this.#context = options.context;
    this.#given = options.given;
    this.#secrets = options.secrets;
    this.#stages = options.stages;
    this.#log = options.log;
  }

  /** Runs all instructions in order; an error names the line. */
  async build(): Promise<void> {
    for (const instruction of this.#stage.instructions) {
      this.#log(`[${instruction.line}] ${instruction.keyword} ${instruction.text}`);
      try {
        await this.#carryOut(instruction);
      } catch (error) {
        throw atLine(error, instruction);
      }
    }
  }

  async #carryOut(instruction: Instruction): Promise<void> {
    const { config } = this.#built;
    switch (instruction.keyword) {
      case 'RUN':
        return this.#run(instruction);
      case 'COPY':
      case 'ADD':
        return this.#copy(instruction);
      case 'WORKDIR':
        return this.#enter(this.#expand(instruction.text));
      case 'ENV':
        return void Object.assign(config.env, Object.fromEntries(pairs(instruction, this.#lookup, this.#file.escape)));
      case 'ARG':
        return declareArguments(instruction, this.#arguments, this.#given, this.#file.globals, this.#file.escape);
      case 'EXPOSE':
        return void config.ports.push(...this.#words(instruction).map((port) => Number.parseInt(port, 10)));
      case 'CMD':
        return void (config.command = this.#commandOf(instruction));
      case 'ENTRYPOINT':
        config.entrypoint = this.#commandOf(instruction);
        return void (config.command = []);
      case 'SHELL':
        if (!instruction.json?.length) throw new RuntimeError('build_failed', 'SHELL takes a list: ["/bin/sh", "-c"].');
        return void (this.#built.shell = instruction.json);
      case 'HEALTHCHECK':
        return void (config.health = parseHealth(instruction, this.#built.shell));
      case 'STOPSIGNAL':
        return void (config.stopSignal = this.#signal(instruction.text));
      default:
        return this.#note(instruction);
    }
  }

  /** Logs an instruction that has no effect in this runtime. */
  #note(instruction: Instruction): void {
    if (instruction.keyword === 'USER') {
      this.#user = this.#expand(instruction.text);
      this.#log(
        `USER ${this.#user}: instances have an account of their own without privileges; the build goes on as it is.`,
      );
    }
    if (instruction.keyword === 'VOLUME')
      this.#log('VOLUME: what is written there goes with the instance; give the service storage to keep it.');
    if (instruction.keyword === 'ONBUILD') this.#log('ONBUILD: nothing is built from this image; it is passed over.');
  }

  async #run(instruction: Instruction): Promise<void> {
    const secrets: Record<string, string> = {};
    for (const mount of instruction.flags['mount'] ?? []) {
      const secret = secretMountOf(mount);
      if (secret) Object.assign(secrets, this.#secretOf(secret));
      else this.#noteMount(mount);
    }
    const { env, workdir } = this.#built.config;
    const set = Object.entries(this.#arguments).filter((entry): entry is [string, string] => entry[1] !== undefined);
    await this.#built.tree.run(
      this.#runCommand(instruction),
      { HOME, ...Object.fromEntries(set), ...env, ...secrets },
      workdir,
    );
  }

  #noteMount(mount: string): void {
    const type = /(?:^|,)type=([^,]+)/.exec(mount)?.[1] ?? 'bind';
    if (type !== 'cache' && type !== 'tmpfs')
      throw new RuntimeError(
        'build_failed',
        `RUN --mount=type=${type} is not there on this runtime; cache, secret and tmpfs are.`,
      );
    this.#log(`--mount=type=${type}: an ordinary folder takes its place.`);
  }

  /** Returns the variable that a secret sets for one command. A file would be in a layer of the image. */
  #secretOf({ id, env, isRequired }: SecretMount): Record<string, string> {
    if (env === null)
      throw new RuntimeError(
        'build_failed',
        `RUN --mount=type=secret,id=${id} makes a file, which is not there on this runtime: add env=${id}, which makes a variable of the command.`,
      );
    if (Object.hasOwn(this.#secrets, id)) return { [env]: this.#secrets[id]! };
    if (isRequired)
      throw new RuntimeError(
        'build_failed',
        `The secret ${id} is required, but the service has no variable of that name.`,
      );
    return {};
  }

  #runCommand({ json, text, heredocs }: Instruction): string[] {
    if (json) return json;
    const { shell } = this.#built;
    const [first] = heredocs;
    if (!first) return [...shell, text];
    if (!/^<<-?["']?\w+["']?$/.test(text))
      return [...shell, [text, ...heredocs.map(({ name, content }) => `${content}${name}`)].join('\n')];
    if (first.content.startsWith('#!'))
      throw new RuntimeError(
        'build_failed',
        'A here-document that names its own interpreter is not there on this runtime; use SHELL.',
      );
    return [...shell, first.content];
  }

  async #copy(instruction: Instruction): Promise<void> {
    const { flags, keyword } = instruction;
    for (const name of Object.keys(flags))
      if (!COPY_FLAGS_USED.has(name))
        throw new RuntimeError(
          'build_failed',
          `${keyword} --${name} is ${COPY_FLAGS.has(name) ? 'not there on this runtime' : 'unknown'}.`,
        );
    const words = instruction.json ?? this.#words(instruction);
    const written = words.at(-1);
    const inline = Object.fromEntries(
      instruction.heredocs.map(({ name, content, literal }) => [name, literal ? content : this.#expandBody(content)]),
    );
    const sources = words
      .slice(0, -1)
      .filter((word) => !/^<<-?/.test(word))
      .map((word) => (instruction.json ? this.#expand(word) : word));
    if (written === undefined || sources.length + instruction.heredocs.length === 0)
      throw new RuntimeError('build_failed', `${keyword} takes at least one source and a destination.`);
    if (keyword === 'ADD') refuseRemote(sources);
    const from = flags['from']?.at(-1);
    const destination = this.#absolute(instruction.json ? this.#expand(written) : written);
    if (sources.length + instruction.heredocs.length > 1 && !destination.endsWith('/'))
      throw new RuntimeError('build_failed', `${keyword} of several files needs a folder: "${written}/".`);
    const shared = { sources, destination, mode: modeOf(flags['chmod']?.at(-1)), inline };
    if (from === undefined) {
      const { folder, checkout, ignore } = this.#context;
      await this.#built.tree.copy({ ...shared, base: folder, allowed: checkout, ignore }, null);
    } else await this.#built.tree.copy({ ...shared, base: null, allowed: null, ignore: [] }, this.#stageOf(from).tree);
  }

  #stageOf(name: string): BuiltStage {
    const built = this.#stages[stageIndex(this.#file.stages, this.#expand(name))];
    if (built) return built;
    throw new RuntimeError(
      'build_failed',
      `--from=${name} is no earlier stage, and this runtime has no images from a registry: use a cluster with Docker or Kubernetes.`,
    );
  }

  #enter(path: string): void {
    this.#built.config.workdir = posix.resolve(this.#built.config.workdir, path);
    this.#built.workdirs.push(this.#built.config.workdir);
    this.#built.tree.enter(this.#built.config.workdir);
  }

  /** Returns the absolute path; a slash at its end is kept and marks a folder. */
  #absolute(path: string): string {
    const absolute = posix.resolve(this.#built.config.workdir, path);
    return /(^|\/)\.?$/.test(path) && absolute !== '/' ? `${absolute}/` : absolute;
  }

  #commandOf({ json, text }: Instruction): string[] {
    return json ?? (text === '' ? [] : [...this.#built.shell, text]);
  }

  #signal(text: string): NodeJS.Signals {
    const name = text.toUpperCase();
    const signal =
      { '2': 'SIGINT', '3': 'SIGQUIT', '15': 'SIGTERM' }[name] ?? (name.startsWith('SIG') ? name : `SIG${name}`);
    return signal as NodeJS.Signals;
  }

  #lookup = (name: string): string | undefined => this.#built.config.env[name] ?? this.#arguments[name];

  #expand(text: string): string {
    return expandWord(text, this.#lookup, this.#file.escape);
  }

  /** Expands the variables of a here-document and keeps its quotes. */
  #expandBody(text: string): string {
    return text.replace(
      /\$\{(\w+)\}|\$(\w+)/g,
      (_, braced?: string, plain?: string) => this.#lookup((braced ?? plain)!) ?? '',
    );
  }

  #words(instruction: Instruction): string[] {
    return splitWords(instruction.text, this.#lookup, this.#file.escape);
  }
}

function refuseRemote(sources: string[]): void {
  const remote = sources.find((source) => /^(https?|git|ssh):\/\/|^git@/.test(source));
  if (remote)
    throw new RuntimeError(
      'build_failed',
      `ADD of ${cutAt(remote, '?')[0]} is not there on this runtime: download it with RUN.`,
    );
  const archive = sources.find((source) => /\.(tar|tar\.(gz|bz2|xz|zst)|tgz|tbz2|txz)$/.test(source));
  if (archive)
    throw new RuntimeError(
      'build_failed',
      `ADD of ${archive} would unpack it, which is not there on this runtime: COPY it and unpack it with RUN.`,
    );
}

function modeOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (!/^[0-7]{3,4}$/.test(text))
    throw new RuntimeError('build_failed', `--chmod=${text} is not an octal mode such as 755.`);
  return Number.parseInt(text, 8);
}

function atLine(error: unknown, instruction: Instruction): unknown {
  if (error instanceof RuntimeError && error.code !== 'build_failed' && error.code !== 'refused') return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof RuntimeError ? error.code : 'build_failed';
  return new RuntimeError(code, dockerfileError(instruction.line, `${instruction.keyword}: ${message}`).message, error);
}
