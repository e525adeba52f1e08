import { lstatSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { RuntimeError } from '#runtimes/runtime.ts';
import { isWithin, submoduleUrl } from '#runtimes/tools/git/location.ts';
import type { Repository } from '#runtimes/tools/git/repository.ts';

/** Submodule of a checked-out repository. */
export interface Submodule {
  url: string;
  commit: string;
  /** Folder for the submodule's files. */
  directory: string;
}

/**
 * Returns the submodules of a checkout. They are fetched one by one like any other source: `git submodule` would connect to unchecked hosts
 * and read local repositories outside of the allowed folders.
 */
export async function listSubmodules(repository: Repository, links: Map<string, string>): Promise<Submodule[]> {
  const wanted = [...links].filter(([file]) => file.startsWith(repository.prefix));
  if (wanted.length === 0) return [];
  const urls = await readUrls(repository);
  return wanted.map(([file, commit]) => {
    const url = urls.get(file);
    if (url === undefined)
      throw new RuntimeError('failed', `The submodule ${file} has no URL in .gitmodules of the repository.`);
    return { url: submoduleUrl(repository.location.url, url), commit, directory: folderOf(repository, file) };
  });
}

/** Returns the URLs in `.gitmodules` by path. */
async function readUrls(repository: Repository): Promise<Map<string, string>> {
  const listed = await repository.git(['config', '--blob', 'HEAD:.gitmodules', '-z', '--list']);
  const byName = new Map<string, { path?: string; url?: string }>();
  for (const entry of listed.stdout.split('\0')) {
    const [, name, key, value] = /^submodule\.([^]+)\.(path|url)\n([^]*)$/.exec(entry) ?? [];
    if (name !== undefined) byName.set(name, { ...byName.get(name), [key!]: value });
  }
  return new Map(
    [...byName.values()].flatMap(({ path: file, url }) =>
      file === undefined || url === undefined ? [] : [[file, url] as const],
    ),
  );
}

/**
 * Returns the folder of a submodule, which git leaves empty. Throws for anything else there, or for a link on its path, which could be an
 * attack.
 */
function folderOf(repository: Repository, file: string): string {
  const folder = path.join(repository.directory, file);
  const isFolder = lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (!isFolder || !isWithin(realpathSync(folder), realpathSync(repository.directory)))
    throw new RuntimeError('refused', `The submodule ${file} does not lie in a folder of its repository.`);
  return folder;
}
