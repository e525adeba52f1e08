import { packageManagerOf, type PackageManager } from '#services/recognition/node-packages.ts';
import {
  copyOwned,
  installing,
  RecognitionError,
  startWith,
  type Project,
  type ProjectOptions,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';
import { serving } from '#services/recognition/static.ts';
import { releaseFor } from '#services/recognition/versions.ts';

/** Parts of package.json that decide how the project is built and started. */
interface Package {
  main?: unknown;
  packageManager?: unknown;
  engines?: { node?: unknown } | null;
  /** JSON of objects whose keys and values are texts. */
  scripts?: string;
  workspaces?: string;
  dependencies?: string;
  devDependencies?: string;
}

const SHAPE = {
  main: true,
  packageManager: true,
  engines: { node: true },
  scripts: 'json',
  workspaces: 'json',
  dependencies: 'json',
  devDependencies: 'json',
} as const;

/** Frameworks whose build makes files for browsers, with the folder of these, and the command of their server for development. */
const SITES = [
  { dependency: 'react-scripts', folder: 'build', development: /react-scripts start/, isSinglePage: true },
  { dependency: '@vue/cli-service', folder: 'dist', development: /vue-cli-service serve/, isSinglePage: true },
  { dependency: '@docusaurus/core', folder: 'build', development: /docusaurus start/, isSinglePage: false },
  { dependency: 'gatsby', folder: 'public', development: /gatsby (?:develop|serve)/, isSinglePage: false },
  { dependency: 'astro', folder: 'dist', development: /astro (?:dev|preview)/, isSinglePage: false },
  { dependency: 'vite', folder: 'dist', development: /\bvite\b/, isSinglePage: true },
];

/** Files that a project without a script `start` is started by. */
const ENTRIES = ['server.js', 'server.mjs', 'index.js', 'index.mjs', 'app.js', 'main.js', 'server.ts', 'index.ts'];

/** Scripts that an installation calls. */
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare'];

/** Returns whether the installation reads more than the lists of packages: scripts, packages of a workspace, patches. */
const readsSources = (files: ProjectFiles, { workspaces }: Package, scripts: Record<string, string>): boolean =>
  workspaces !== undefined ||
  INSTALL_SCRIPTS.some((name) => name in scripts) ||
  files.those('pnpm-workspace.yaml', 'patches/', '.yarn/', '.yarnrc.yml').length > 0;

/** Names of variables that frameworks write into files for browsers. */
const PUBLIC = /^(?:VITE|NEXT_PUBLIC|NUXT_PUBLIC|REACT_APP|VUE_APP|GATSBY|PUBLIC|EXPO_PUBLIC)_[A-Z0-9_]+$/i;

/** Returns the instructions by which the build sees the variables that are public anyway. */
const publicArguments = ({ variables }: ProjectOptions): string[] =>
  variables
    .filter((name) => PUBLIC.test(name))
    .toSorted()
    .map((name) => `ARG ${name}`);

/** Recognises a project of Node.js by its `package.json`. */
export async function recogniseNode(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  if (!files.has('package.json')) return null;
  const own = ((await files.json('package.json', SHAPE)) ?? {}) as Package;
  const scripts = textsOf(own.scripts);
  const dependencies = { ...textsOf(own.devDependencies), ...textsOf(own.dependencies) };
  const manager = packageManagerOf(files, own.packageManager, options);
  const { node: range } = own.engines ?? {};
  const release = releaseFor('node', (await files.read('.nvmrc')) || (typeof range === 'string' ? range : null));
  const isBun = manager.name === 'Bun';
  const build = {
    image: isBun ? 'oven/bun:1' : `node:${release}`,
    lines: [
      ...manager.before,
      ...installing(['package.json', ...manager.lockFiles], [manager.install], readsSources(files, own, scripts)),
      ...('build' in scripts ? [...publicArguments(options), `RUN ${manager.script('build')}`] : []),
    ],
  };
  const because = ['package.json', ...manager.lockFiles].join(', ');
  const shared = { language: 'NODE' as const, programs: manager.programs, build };
  const site = SITES.find(({ dependency }) => dependency in dependencies);
  const start = await files.procfile('web');
  if (site && start === null && 'build' in scripts && (!scripts['start'] || site.development.test(scripts['start'])))
    return {
      ...shared,
      because: `${because}: files for browsers, made by ${site.dependency}`,
      programs: [...manager.programs, 'caddy'],
      ...serving(copyOwned(`/app/${site.folder}`, 'build'), site),
    };
  const command = start ?? startOf(files, own, scripts, dependencies, manager);
  const needsOnlyRuntime = 'build' in scripts || Object.keys(textsOf(own.devDependencies)).length > 0;
  return {
    ...shared,
    because: `${because}: ${isBun ? 'Bun' : `Node.js ${release}`} with ${manager.name}`,
    build: {
      ...build,
      lines: [...build.lines, ...(needsOnlyRuntime && manager.prune !== null ? [`RUN ${manager.prune}`] : [])],
    },
    final: {
      image: isBun ? 'oven/bun:1-slim' : `node:${release}-slim`,
      lines: ['ENV NODE_ENV=production', copyOwned('/app', 'build')],
    },
    command: startWith(command, 'node_modules/.bin'),
  };
}

function startOf(
  files: ProjectFiles,
  { main }: Package,
  scripts: Record<string, string>,
  dependencies: Record<string, string>,
  { name }: PackageManager,
): string {
  if (scripts['start']) return 'prestart' in scripts && name === 'npm' ? 'npm run start' : scripts['start'];
  if ('nuxt' in dependencies) return 'node .output/server/index.mjs';
  const [entry] = files.those(...(typeof main === 'string' ? [main.replace(/^\.\//, '')] : []), ...ENTRIES);
  if (entry !== undefined && /^[\w./-]+$/.test(entry)) return `${name === 'Bun' ? 'bun' : 'node'} ${entry}`;
  throw new RecognitionError(
    'This looks like a project of Node.js (package.json), but nothing says how it is started: add a script "start" to package.json, or a Procfile with a line "web: …".',
  );
}

/** Returns the entries of an object of JSON whose values are texts. */
function textsOf(json: string | undefined): Record<string, string> {
  const read: unknown = JSON.parse(json ?? '{}');
  const entries = Object.entries(typeof read === 'object' && read !== null ? read : {});
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
