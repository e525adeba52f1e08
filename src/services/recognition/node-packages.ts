import type { ProjectFiles } from '#services/recognition/project-files.ts';
import { namesIn, run, type ProjectOptions, type RunOptions } from '#services/recognition/project.ts';

/** Way in which one of the package managers of Node.js installs. */
export interface PackageManager {
  name: string;
  /** Files that an installation needs, apart from package.json. */
  lockFiles: string[];
  programs: string[];
  /** Instructions before the first file is copied. */
  before: string[];
  install: string;
  /** Command that runs a script of package.json. */
  script(name: string): string;
  /** Instruction that removes what only the build needs; null if the manager cannot. */
  prune: string | null;
  /** The same for all packages of a workspace. */
  pruneWorkspace: string | null;
}

/** Files in which the managers have registries and their tokens. */
const SETTINGS = ['.npmrc', '.yarnrc', '.yarnrc.yml', 'bunfig.toml'];

/** Version in `packageManager` of package.json: `pnpm@10.2.0+sha512…`. */
const versionOf = (name: string, named: unknown, otherwise: string): string => {
  const [, found, version] = /^(\w+)@(\d+\.\d+\.\d+)/.exec(typeof named === 'string' ? named : '') ?? [];
  return found === name ? version! : otherwise;
};

/** Returns the package manager that the lock file belongs to; npm without one. */
export async function packageManagerOf(
  files: ProjectFiles,
  named: unknown,
  { isMachine }: ProjectOptions,
): Promise<PackageManager> {
  const settings = await Promise.all(files.those(...SETTINGS).map((file) => files.read(file)));
  const options = { isMachine, secrets: namesIn(...settings) };
  const [bun] = files.those('bun.lock', 'bun.lockb');
  if (bun !== undefined) return bunOf(files, bun, options);
  if (files.has('pnpm-lock.yaml')) return pnpmOf(files, named, options);
  if (files.has('yarn.lock')) return yarnOf(files, named, options);
  const pruneNpm = run(options, 'npm prune --omit=dev --no-audit --no-fund');
  const [lock] = files.those('package-lock.json', 'npm-shrinkwrap.json');
  return {
    name: 'npm',
    lockFiles: [...(lock === undefined ? [] : [lock]), ...files.those('.npmrc')],
    programs: ['node', 'npm'],
    before: [],
    install: run(
      options,
      lock === undefined ? 'npm install --no-audit --no-fund' : 'npm ci --no-audit --no-fund',
      '/root/.npm',
    ),
    script: (name) => `npm run ${name}`,
    prune: pruneNpm,
    pruneWorkspace: pruneNpm,
  };
}

/** Returns the instruction that adds a package manager to an image; a machine has its own. */
const added = ({ isMachine }: RunOptions, name: string): string[] =>
  isMachine ? [] : [`RUN npm install --global --no-audit --no-fund ${name}`];

const pnpmOf = (files: ProjectFiles, named: unknown, options: RunOptions): PackageManager => ({
  name: 'pnpm',
  lockFiles: files.those('pnpm-lock.yaml', 'pnpm-workspace.yaml', '.npmrc'),
  programs: ['node', 'pnpm'],
  before: added(options, `pnpm@${versionOf('pnpm', named, '10')}`),
  install: run(options, 'pnpm install --frozen-lockfile', '/root/.local/share/pnpm/store'),
  script: (name) => `pnpm run ${name}`,
  prune: run(options, 'CI=true pnpm prune --prod --ignore-scripts'),
  // pnpm prunes the root of a workspace alone.
  pruneWorkspace: null,
});

function yarnOf(files: ProjectFiles, named: unknown, options: RunOptions): PackageManager {
  const version = versionOf('yarn', named, files.has('.yarnrc.yml') ? '4' : '1');
  const isClassic = version.startsWith('1');
  const onlyProduction = 'yarn install --production --ignore-scripts --prefer-offline --non-interactive';
  const prune = isClassic ? run(options, onlyProduction) : null;
  return {
    name: 'Yarn',
    lockFiles: files.those('yarn.lock', '.yarnrc.yml', '.yarnrc', '.npmrc'),
    programs: ['node', 'yarn'],
    // The image has Yarn 1. Plug'n'Play would need its own start command: packages are in node_modules, as with the others.
    before: isClassic
      ? []
      : [...added(options, `--force @yarnpkg/cli-dist@${version}`), 'ENV YARN_NODE_LINKER=node-modules'],
    install: run(
      options,
      isClassic ? 'yarn install --frozen-lockfile --non-interactive' : 'yarn install --immutable',
      isClassic ? '/usr/local/share/.cache/yarn' : '/root/.yarn/berry/cache',
    ),
    script: (name) => `yarn run ${name}`,
    prune,
    pruneWorkspace: prune,
  };
}

const bunOf = (files: ProjectFiles, lock: string, options: RunOptions): PackageManager => ({
  name: 'Bun',
  lockFiles: [lock, ...files.those('.npmrc', 'bunfig.toml')],
  programs: ['bun'],
  before: [],
  install: run(options, 'bun install --frozen-lockfile', '/root/.bun/install/cache'),
  script: (name) => `bun run ${name}`,
  prune: null,
  pruneWorkspace: null,
});
