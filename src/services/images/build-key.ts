import { createHash } from 'node:crypto';
import { canonicalJson } from '#kernel/canonical-json.ts';
import type { Commit, LastRelease, ServiceSnapshot } from '#deployments/index.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';
import type { GitSource } from '#services/sources/git.ts';

/**
 * Hashes the inputs of an image that is built from a repository. Variables belong to them because they may be build arguments: a changed
 * one leads to a build, which ends at once where the Dockerfile does not declare it. `shared` are those of the environment and above.
 */
export function buildKeyOf(
  service: ServiceSnapshot,
  shared: readonly FrozenVariable[],
  git: GitSource,
  commit: Commit | undefined,
  ...recipe: (string | null)[]
): string {
  // Built-in variables name all siblings: with them a new service would rebuild every application.
  const variables = [...shared, ...service.variables].filter(({ scope }) => scope !== 'BUILT_IN');
  const content = [git.url, commit?.id, git.root_path, ...recipe, variables];
  return createHash('sha256').update(canonicalJson(content)).digest('hex').slice(0, 32);
}

/** Explains to people why an image is built. */
export function whyBuilt(commit: Commit | undefined, last: LastRelease | null): string {
  if (!last) return 'it was never built';
  if (last.commit?.id !== commit?.id)
    return `the commit changed from ${last.commit?.id.slice(0, 8) ?? 'none'} to ${commit?.id.slice(0, 8) ?? 'none'}`;
  return last.image === null ? 'its image is no longer there' : 'build settings or variables changed';
}

/** Limits of a build, by the advanced settings of every kind that builds. */
export const buildLimits = ({ advancedSettings: settings }: ServiceSnapshot) => ({
  timeoutSeconds: Number(settings['build.timeout_max_sec']),
  resources: {
    cpuMilli: Number(settings['build.cpu_max_in_milli']),
    memoryMib: Number(settings['build.ram_max_in_gib']) * 1024,
  },
});
