import path from 'node:path';
import type { ProjectFiles } from '#services/recognition/project-files.ts';
import { isPlain, RecognitionError } from '#services/recognition/project.ts';

/** Workspace of npm, pnpm, Yarn or Bun that a package is a part of. */
export interface NodeWorkspace {
  home: ProjectFiles;
  /** Folder of the package from the workspace. */
  folder: string;
  /** Folders of the workspace's packages that the package is made of, in the order in which they are built. */
  builds: string[];
}

/** Limit for the packages of a workspace: the package.json of each is read. */
const MOST = 100;

/** Lock files, by which a package below a workspace stands for itself. */
const LOCKS = ['package-lock.json', 'npm-shrinkwrap.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock', 'bun.lockb'];

/** Returns the nearest workspace above a package that names it; null without one. */
export async function workspaceAbove(files: ProjectFiles): Promise<NodeWorkspace | null> {
  if (files.those(...LOCKS).length > 0) return null;
  for (const home of await files.above()) {
    const patterns = await patternsOf(home);
    const folder = files.from(home);
    if ((await matching(home, patterns, [folder])).length > 0)
      return { home, folder, builds: await buildsOf(home, patterns, folder) };
  }
  return null;
}

/** Returns the patterns of the folders of a workspace; none if the folder is no workspace. */
async function patternsOf(home: ProjectFiles): Promise<string[]> {
  const { packages } = ((await home.yaml('pnpm-workspace.yaml')) ?? {}) as { packages?: unknown };
  const { workspaces } = ((await home.json('package.json', { workspaces: 'json' })) ?? {}) as { workspaces?: string };
  const named = JSON.parse(workspaces ?? 'null') as { packages?: unknown } | null;
  const list = packages ?? named?.packages ?? named;
  const texts = Array.isArray(list) ? list.filter((one): one is string => typeof one === 'string') : [];
  return texts.map((pattern) => pattern.replace(/^(!?)\.\//, '$1').replace(/\/$/, ''));
}

const matching = async (home: ProjectFiles, patterns: string[], folders: string[]): Promise<string[]> =>
  patterns.length === 0 ? [] : home.matching('package.json', patterns, folders);

/** Returns the folders of a workspace, of patterns that name folders or all folders in them. */
async function foldersOf(home: ProjectFiles, patterns: string[]): Promise<string[]> {
  const found = await Promise.all(
    patterns
      .filter((pattern) => !pattern.startsWith('!'))
      .map(async (pattern) => {
        const parts = pattern.split('/');
        const first = parts.findIndex((part) => part.includes('*'));
        if (first < 0) return [pattern];
        const base = parts.slice(0, first).join('/');
        const names = (await home.list(base)).filter(
          (name) => name.endsWith('/') && !/^(?:\.|node_modules\/)/.test(name),
        );
        return names.map((name) => path.posix.join(base, name.slice(0, -1)));
      }),
  );
  return matching(home, patterns, [...new Set(found.flat())].filter(isPlain));
}

interface Member {
  folder: string;
  hasBuild: boolean;
  dependencies: string[];
}

const SHAPE = { name: true, scripts: 'json', dependencies: 'json', devDependencies: 'json' } as const;

/** Returns the packages with a script `build` that a package depends on, and the package itself, dependencies first. */
async function buildsOf(home: ProjectFiles, patterns: string[], folder: string): Promise<string[]> {
  const folders = [...new Set([folder, ...(await foldersOf(home, patterns))])];
  if (folders.length > MOST)
    throw new RecognitionError(
      `The workspace has more than ${MOST} packages, too many to find those that ${folder} is made of: commit a Dockerfile.`,
    );
  const members = new Map<string, Member>();
  for (const one of folders) {
    const own = (await home.json(`${one}/package.json`, SHAPE)) as { [Key in keyof typeof SHAPE]?: string } | null;
    if (own === null) continue;
    const [scripts, ...lists] = [own.scripts, own.dependencies, own.devDependencies].map(keysOf);
    const dependencies = lists.flat();
    const isNamed = typeof own.name === 'string';
    members.set(isNamed ? own.name! : one, { folder: one, hasBuild: scripts!.includes('build'), dependencies });
  }
  return ordered(
    members,
    [...members.values()].find((one) => one.folder === folder)!,
  );
}

function ordered(members: Map<string, Member>, first: Member): string[] {
  const seen = new Set<Member>();
  const visit = (member: Member): string[] => {
    if (seen.has(member)) return [];
    seen.add(member);
    const before = member.dependencies.flatMap((name) => visit(members.get(name) ?? member));
    return member.hasBuild ? [...before, member.folder] : before;
  };
  return visit(first);
}

/** Returns the keys of an object of JSON. */
function keysOf(json: string | undefined): string[] {
  const read: unknown = JSON.parse(json ?? '{}');
  return typeof read === 'object' && read !== null ? Object.keys(read) : [];
}
