import path from 'node:path';
import type { ProjectFiles } from '#services/recognition/project-files.ts';

/** Workspace of uv that a package is a part of. */
interface UvWorkspace {
  home: ProjectFiles;
  /** Folder of the package from the workspace. */
  folder: string;
  /** Name of the package. */
  name: string;
}

interface PyProject {
  project?: { name?: unknown };
  tool?: { uv?: { workspace?: { members?: unknown; exclude?: unknown } } };
}

/** Returns the nearest workspace above a package that has a lock file and names the package; null without one. */
export async function uvWorkspaceAbove(files: ProjectFiles): Promise<UvWorkspace | null> {
  const { project } = (await files.toml('pyproject.toml')) as PyProject;
  const name = project?.name;
  if (typeof name !== 'string' || !/^[A-Za-z0-9][\w.-]*$/.test(name)) return null;
  for (const home of await files.above()) {
    if (!home.has('uv.lock')) continue;
    const { tool } = (await home.toml('pyproject.toml')) as PyProject;
    const { members, exclude } = tool?.uv?.workspace ?? {};
    const folder = files.from(home);
    const patterns = [...textsOf(members), ...textsOf(exclude).map((one) => `!${one}`)];
    const [found] = await home.matching('pyproject.toml', patterns, [folder]);
    if (found !== undefined) return { home, folder, name };
  }
  return null;
}

/** Returns the patterns of a list, without `./` at their beginnings. */
const textsOf = (list: unknown): string[] =>
  Array.isArray(list)
    ? list.filter((one): one is string => typeof one === 'string').map((one) => path.posix.normalize(one))
    : [];
