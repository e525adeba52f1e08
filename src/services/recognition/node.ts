import path from 'node:path';
import { packageManagerOf, type PackageManager } from '#services/recognition/node-packages.ts';
import { workspaceAbove } from '#services/recognition/node-workspace.ts';
import {
  copyOwned,
  installing,
  RecognitionError,
  serverOf,
  startWith,
  unstarted,
  type Project,
  type ProjectOptions,
  type Unclear,
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

/** Recognises a project of Node.js by its `package.json`, with the workspace that it is a part of. */
export async function recogniseNode(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  if (!files.has('package.json')) return null;
  const own = ((await files.json('package.json', SHAPE)) ?? {}) as Package;
  const workspace = await workspaceAbove(files);
  const { home, folder } = workspace ?? { home: files, folder: '' };
  const whole = workspace ? (((await home.json('package.json', SHAPE)) ?? {}) as Package) : own;
  const scripts = textsOf(own.scripts);
  const builds = workspace?.builds ?? ('build' in scripts ? [''] : []);
  const dependencies = { ...textsOf(own.devDependencies), ...textsOf(own.dependencies) };
  if (!workspace) refuseOutside(files, dependencies);
  const manager = await packageManagerOf(home, whole.packageManager, options);
  const release = await releaseOf(files, own, home, whole);
  const isBun = manager.name === 'Bun';
  const readsAll = workspace !== null || readsSources(home, whole, textsOf(whole.scripts));
  const build = {
    image: isBun ? 'oven/bun:1' : `node:${release}`,
    lines: [
      ...manager.before,
      ...installing(['package.json', ...manager.lockFiles], [manager.install], readsAll),
      ...(builds.length > 0 ? publicArguments(options) : []),
      ...builds.map((one) => `RUN ${one === '' ? '' : `cd ${one} && `}${manager.script('build')}`),
    ],
  };
  const because = [
    ['package.json', ...manager.lockFiles].join(', '),
    ...(workspace ? [` of the workspace of ${folder}`] : []),
  ].join('');
  const shared = { language: 'NODE' as const, home, programs: manager.programs, build };
  const site = SITES.find(({ dependency }) => dependency in dependencies);
  const start = await files.procfile(options);
  const isSite = site && 'build' in scripts && (!scripts['start'] || site.development.test(scripts['start']));
  if (isSite && start === null && options.port !== null)
    return {
      ...shared,
      because: `${because}: files for browsers, made by ${site.dependency}`,
      programs: [...manager.programs, 'caddy'],
      ...serving(copyOwned(path.posix.join('/app', folder, site.folder), 'build'), site),
    };
  const needsOnlyRuntime =
    builds.length > 0 || [own, whole].some((one) => Object.keys(textsOf(one.devDependencies)).length > 0);
  const server = isSite ? site.dependency : SERVERS.find((one) => one in textsOf(own.dependencies));
  const isUnclear = options.port === null && server !== undefined;
  const prune = workspace ? manager.pruneWorkspace : manager.prune;
  return {
    ...shared,
    because: `${because}: ${isBun ? 'Bun' : `Node.js ${release}`} with ${manager.name}`,
    build: { ...build, lines: [...build.lines, ...(needsOnlyRuntime && prune !== null ? [prune] : [])] },
    final: {
      image: isBun ? 'oven/bun:1-slim' : `node:${release}-slim`,
      lines: ['ENV NODE_ENV=production', copyOwned('/app', 'build')],
    },
    workdir: folder,
    folders: [...new Set([folder, ''])].map((one) => path.posix.join(one, 'node_modules/.bin')),
    command: startWith(
      start ??
        (isUnclear
          ? serverOf(`a project with ${server}`, ['node', 'report.js'])
          : startOf(files, options, own, dependencies, manager)),
    ),
  };
}

/** Throws RecognitionError for a package that lies outside of the folder which is built. */
function refuseOutside({ root }: ProjectFiles, dependencies: Record<string, string>): void {
  const found = Object.entries(dependencies).find(([, from]) =>
    /^(?:workspace:|(?:file|link|portal):\.\.\/)/.test(from),
  );
  if (found === undefined) return;
  throw new RecognitionError(
    `package.json takes ${found[0]} from ${found[1]}, which is not below root_path /${root}: name both folders in "workspaces" of the package.json above them, or in pnpm-workspace.yaml, and keep the lock file there.`,
  );
}

/** Returns the release of Node.js that the package names, or its workspace. */
async function releaseOf(files: ProjectFiles, own: Package, home: ProjectFiles, whole: Package): Promise<string> {
  const ranges = [await files.read('.nvmrc'), own.engines?.node, await home.read('.nvmrc'), whole.engines?.node];
  return releaseFor(
    'node',
    ranges.find((range): range is string => typeof range === 'string' && range !== ''),
  );
}

/** Packages whose programs are servers. */
const SERVERS = ['next', 'nuxt', '@nestjs/core', 'express', 'fastify', 'koa', 'hono', '@hapi/hapi', '@remix-run/serve'];

function startOf(
  files: ProjectFiles,
  { port }: ProjectOptions,
  { main, ...own }: Package,
  dependencies: Record<string, string>,
  { name }: PackageManager,
): string | Unclear {
  const scripts = textsOf(own.scripts);
  if (scripts['start']) return 'prestart' in scripts && name === 'npm' ? 'npm run start' : scripts['start'];
  if ('nuxt' in dependencies) return 'node .output/server/index.mjs';
  const [entry] = files.those(...(typeof main === 'string' ? [main.replace(/^\.\//, '')] : []), ...ENTRIES);
  if (entry !== undefined && /^[\w./-]+$/.test(entry)) return `${name === 'Bun' ? 'bun' : 'node'} ${entry}`;
  return unstarted('a project of Node.js (package.json)', 'a script "start" to package.json', port);
}

/** Returns the entries of an object of JSON whose values are texts. */
function textsOf(json: string | undefined): Record<string, string> {
  const read: unknown = JSON.parse(json ?? '{}');
  const entries = Object.entries(typeof read === 'object' && read !== null ? read : {});
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
