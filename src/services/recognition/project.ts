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
  /** Files and fields by which it was recognised, for people: `package.json and pnpm-lock.yaml`. */
  because: string;
  /** Programs that its build and its command call on a cluster whose images are the machine itself. */
  programs: string[];
  /** Stage that makes the files of the image; null if they are those of the repository. */
  build: Stage | null;
  /** Stage of the image. It copies from the stage `build` by itself. */
  final: Stage;
  /** Command line for `sh`, which has the port in `$PORT`. */
  command: string;
}

export interface ProjectOptions {
  /** Port that the program is to listen on. */
  port: number;
  /** Names of the variables of the service. */
  variables: readonly string[];
  /** True if FROM stands for the machine itself, whose programs are used, and which has no caches of builds. */
  isMachine: boolean;
}

/** Project that is not recognised, or not clearly; the message says what would help. */
export class RecognitionError extends Error {
  override readonly name = 'RecognitionError';
}

/** Returns a RUN whose folders of caches other builds of the organization share. */
export const run = ({ isMachine }: ProjectOptions, command: string, ...caches: string[]): string =>
  ['RUN', ...(isMachine ? [] : caches.map((folder) => `--mount=type=cache,target=${folder}`)), command].join(' ');

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

/** Returns the command line that starts a program in place of the shell, with folders in front of its PATH. */
export function startWith(command: string, ...folders: string[]): string {
  const path = folders.length === 0 ? '' : `export PATH="${folders.map((one) => `$PWD/${one}`).join(':')}:$PATH"; `;
  // Several commands cannot take the place of their shell.
  if (/[;&|<>`()\n]/.test(command)) return path + command;
  return `${path}exec ${/^\w+=/.test(command) ? 'env ' : ''}${command}`;
}

/** Makes the text of the Dockerfile. */
export function dockerfileOf(project: Project, options: ProjectOptions): string {
  const { build, final, command } = project;
  const check = options.isMachine ? [checkOf(project.programs)] : [];
  const stages = [
    ...(build === null ? [] : [`FROM ${build.image} AS build`, 'WORKDIR /app', ...check, ...build.lines, '']),
    `FROM ${final.image}`,
    'WORKDIR /app',
    ...(build === null ? check : []),
    `ENV PORT=${options.port}`,
    ...final.lines,
    `EXPOSE ${options.port}`,
    `USER ${ACCOUNT}`,
    `CMD ${JSON.stringify(['sh', '-c', command])}`,
  ];
  return [`# Recognised by ${project.because}. To change it, commit it as Dockerfile.`, ...stages, ''].join('\n');
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
