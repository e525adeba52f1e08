import path from 'node:path';
import type { ProjectFiles } from '#services/recognition/project-files.ts';

/** Languages of projects that are recognised; `STATIC` is a folder of files for browsers. */
export const LANGUAGES = ['NODE', 'PYTHON', 'GO', 'JAVA', 'PHP', 'RUBY', 'RUST', 'STATIC'] as const;
type Language = (typeof LANGUAGES)[number];

/** Image and instructions of a stage of a Dockerfile, without its WORKDIR, which is always `/app`. */
export interface Stage {
  image: string;
  lines: string[];
}

/** Project whose image can be built without a Dockerfile of its own. */
export interface Project {
  language: Language;
  /** Folder of the repository whose files its build has; the project lies in it, or below it. */
  home: ProjectFiles;
  /** Working folder of the program below `/app`, where that is another. */
  workdir?: string;
  /** Files and fields by which it was recognised, for people: `package.json and pnpm-lock.yaml`. */
  because: string;
  /** Programs that its build and its command call on a cluster whose images are the machine itself. */
  programs: string[];
  /** Stage that makes the files of the image; null if they are those of the repository. */
  build: Stage | null;
  /** Stage of the image. It copies from the stage `build` by itself. */
  final: Stage;
  /** Folders of programs below `/app`, which come first in the PATH of every command. */
  folders?: string[];
  /** Command line for `sh`, which has the port in `$PORT`. */
  command: string | Unclear;
}

/** Missing command of a project, with what would make it clear. */
export interface Unclear {
  unclear: string;
}

export interface ProjectOptions {
  /** Port that the program is to listen on; null for a job, which has none. */
  port: number | null;
  /** Types of the lines of a Procfile that may name the command, the first that there is. */
  processes: readonly string[];
  /** True if the service names its commands itself. */
  hasCommand: boolean;
  /** Names of the variables of the service. */
  variables: readonly string[];
  /** True if FROM stands for the machine itself, whose programs are used, and which has no caches of builds. */
  isMachine: boolean;
}

/** Project that is not recognised, or not clearly; the message says what would help. */
export class RecognitionError extends Error {
  override readonly name = 'RecognitionError';
}

export interface RunOptions extends Pick<ProjectOptions, 'isMachine'> {
  /** Names of the variables that the command has, and that neither a layer nor the history of an image keeps. */
  secrets?: readonly string[];
}

/** Returns a RUN whose folders of caches other builds of the organization share. */
export function run({ isMachine, secrets = [] }: RunOptions, command: string, ...caches: string[]): string {
  // A machine makes no files of secrets, and builders make no variables of them before Dockerfile 1.10.
  const mounts = [
    ...secrets.map((name) => `type=secret,id=${name}${isMachine ? `,env=${name}` : ''}`),
    ...(isMachine ? [] : caches.map((folder) => `type=cache,target=${folder}`)),
  ];
  const exported = isMachine || secrets.length === 0 ? [] : [exportOf(secrets)];
  return ['RUN', ...mounts.map((mount) => `--mount=${mount}`), ...exported, command].join(' ');
}

/** Returns the commands that make variables of the files of secrets; there is none of a variable that the service does not have. */
const exportOf = (secrets: readonly string[]): string =>
  `for name in ${secrets.join(' ')}; do if [ -f "/run/secrets/$name" ]; then export "$name=$(cat "/run/secrets/$name")"; fi; done;`;

/** Tells whether a path is the same in an instruction and for a shell, without quotes. */
export const isPlain = (folder: string): boolean => /^[\w@.+/-]+$/.test(folder) && !folder.startsWith('-');

/** Variables of every shell, which are no settings of a package manager. */
const OF_SHELLS = new Set(['HOME', 'PATH', 'PWD', 'USER']);

/** Returns the names of the variables that files of settings name, as in `${NPM_TOKEN}`. */
export const namesIn = (...texts: string[]): string[] =>
  [...new Set(texts.flatMap((text) => [...text.matchAll(/\$\{?([A-Za-z_]\w*)/g)].map(([, name]) => name!)))]
    .filter((name) => !OF_SHELLS.has(name))
    .toSorted();

/**
 * Returns the instructions that install packages and copy the sources: packages first, so that they stay in the cache while only sources
 * change, except where the installation reads sources itself. `lists` are the files that name the packages.
 */
export const installing = (lists: string[], install: string[], readsSources: boolean): string[] =>
  readsSources ? ['COPY . ./', ...install] : [`COPY ${lists.join(' ')} ./`, ...install, 'COPY . ./'];

/** Account of the program, which exists in no image: it owns the files of the application, and nothing else. */
const ACCOUNT = '65532:65532';

/** Returns a COPY into the working folder, for the account of the program. */
export const copyOwned = (source: string, from?: string, to = './'): string =>
  `COPY ${from === undefined ? '' : `--from=${from} `}--chown=${ACCOUNT} ${source} ${to}`;

/** Folders that programs read while they run, as opposed to their sources. */
const RESOURCE_FOLDERS = ['assets/', 'config/', 'migrations/', 'public/', 'static/', 'templates/', 'views/'];

/** Returns the instructions that copy what a compiled program reads while it runs. */
export const copyResources = (files: ProjectFiles): string[] =>
  files.those(...RESOURCE_FOLDERS).map((folder) => copyOwned(folder, undefined, folder));

/** Returns the command line that starts a program in place of the shell. */
export function startWith(command: string | Unclear): string | Unclear {
  // Several commands cannot take the place of their shell.
  if (typeof command !== 'string' || /[;&|<>`()\n]/.test(command)) return command;
  return `exec ${/^\w+=/.test(command) ? 'env ' : ''}${command}`;
}

/** Returns the answer for a project whose program is a server, for a job; `example` is a command that a job could have. */
export const serverOf = (project: string, example: string[]): Unclear => ({
  unclear: `This looks like ${project}, which is a server, and a job runs to its end: name the command in the arguments of the job, such as ${JSON.stringify(example)}, or in a line "job: …" of a Procfile.`,
});

/** Returns the answer for a project that nothing says how to start; `file` would say it. */
export const unstarted = (project: string, file: string, port: number | null): Unclear => ({
  unclear: `This looks like ${project}, but nothing says how it is started: ${port === null ? 'name the command in the arguments of the job, ' : ''}add ${file}, or a Procfile with a line "${port === null ? 'job' : 'web'}: …".`,
});

/** Makes the text of the Dockerfile; `advice` says how it is made the project's own. */
export function dockerfileOf(project: Project, options: ProjectOptions, advice: string): string {
  const { build, final, workdir, folders = [] } = project;
  const { port } = options;
  const check = options.isMachine ? [checkOf(project.programs)] : [];
  const stages = [
    ...(build === null ? [] : [`FROM ${build.image} AS build`, 'WORKDIR /app', ...check, ...build.lines, '']),
    `FROM ${final.image}`,
    'WORKDIR /app',
    ...(build === null ? check : []),
    ...final.lines,
    ...(folders.length === 0 ? [] : [`ENV PATH=${folders.map((one) => path.posix.join('/app', one)).join(':')}:$PATH`]),
    ...(port === null ? [] : [`ENV PORT=${port}`, `EXPOSE ${port}`]),
    ...(workdir === undefined || workdir === '' ? [] : [`WORKDIR /app/${workdir}`]),
    `USER ${ACCOUNT}`,
    ...commandOf(project, options),
  ];
  return [`# Recognised by ${project.because}. ${advice}`, ...stages, ''].join('\n');
}

/** Returns the instruction with the command; none where only the service names one. Throws RecognitionError where none does. */
function commandOf({ command }: Project, { hasCommand }: ProjectOptions): string[] {
  if (typeof command === 'string') return [`CMD ${JSON.stringify(['sh', '-c', command])}`];
  if (hasCommand) return [];
  throw new RecognitionError(command.unclear);
}

/** Returns the instruction that names the programs which a machine lacks. */
const checkOf = (programs: string[]): string =>
  `RUN for name in ${programs.join(' ')}; do command -v "$name" >/dev/null || missing="$missing $name"; done; [ -z "$missing" ] || { echo "This machine has no$missing: install it, or use a cluster with Docker or Kubernetes." >&2; exit 1; }`;

/** Files that no image needs, where the repository has no `.dockerignore`. */
export const IGNORED = [
  '.git',
  '.env',
  '.env.*',
  'Dockerfile',
  'Dockerfile.dockerignore',
  '**/node_modules',
  '**/.venv',
  '**/__pycache__',
  'target',
  'vendor/bundle',
  '',
].join('\n');
